"""The texts that input processors get: every text that is new in a request to the model."""

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic_ai import ModelRequest, ModelResponse, TextContent, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from agents_app.registry import Entry, Kind, processor, registry, tool
from runs_app.building.agent import build_agent
from runs_app.building.text_values import distinct_keys
from runs_app.engine.context import RunDeps
from runs_app.exceptions import RunError
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.runs import DEMO, start_run, wait_for_end

MASK = [{"key": "mask-email"}]
CONTACT = {"ada@example.org": ["bob@example.org", 1], "cy@example.org": "eve", "name": "Ada"}
MASKED_CONTACT = {"[e-mail]": ["[e-mail]", 1], "[e-mail] (2)": "eve", "name": "Ada"}


@pytest.fixture
def requests():
    """Register the provider `listener`, whose model calls the tool `contact` twice. Return its requests."""
    received: list[list[Any]] = []

    async def answer(messages, info):
        received.append([part for message in messages for part in message.parts])
        if len(received) % 3:
            yield {0: DeltaToolCall("contact", "{}", tool_call_id=f"call-{len(received)}")}
        else:
            yield "Done."

    model = FunctionModel(stream_function=answer)
    registry.add(Entry(Kind.MODEL_PROVIDER, "listener", "Listener", target=lambda name, choice: model))
    return received


@pytest.fixture(autouse=True)
def contact_tool():
    @tool("contact")
    def contact() -> dict[str, Any]:
        return CONTACT


@pytest.fixture
def exclaim():
    """Register a processor that shows how often it processed a text."""

    @processor("exclaim")
    def exclaim(text: str) -> str:
        return f"{text}!"


@dataclass
class Messenger(AbstractCapability[RunDeps]):
    """A capability that adds words of a person before the second request."""

    async def before_model_request(self, ctx, request_context):
        if ctx.run_step == 2:
            ctx.enqueue("And I am bob@example.org")
            ctx.enqueue("One moment.", TextContent("Ask cy@example.org"))
        return request_context


LISTENER = {"model": {"provider": "listener", "name": "any"}, "tools": ["contact"]}


def contents(parts, kind):
    return [part.content for part in parts if isinstance(part, kind)]


@pytest.mark.django_db
def test_words_that_a_later_request_adds_are_processed(run, requests):
    registry.add(Entry(Kind.MEMORY, "messenger", "Messenger", target=Messenger))

    run(build_agent({**LISTENER, "memory": "messenger", "inputProcessors": MASK}), "I am ada@example.org")

    assert "@" not in str(contents(requests[1], UserPromptPart))
    assert str(contents(requests[2], UserPromptPart)).count("[e-mail]") == 3


@pytest.mark.django_db
def test_results_of_tools_are_processed_if_the_processor_says_so(run, requests, exclaim):
    result = run(build_agent({**LISTENER, "inputProcessors": [*MASK, {"key": "exclaim"}]}), "I am ada@example.org")

    assert contents(requests[1], ToolReturnPart) == [MASKED_CONTACT]
    assert contents(requests[2], ToolReturnPart) == [MASKED_CONTACT] * 2
    assert contents(requests[2], UserPromptPart) == ["I am [e-mail]!"]
    assert "@" not in str(result.all_messages())


@pytest.mark.django_db
def test_other_processors_do_not_get_results_of_tools(run, requests, exclaim):
    run(build_agent({**LISTENER, "inputProcessors": [{"key": "exclaim"}]}), "Hello")

    assert contents(requests[2], ToolReturnPart) == [CONTACT] * 2


@pytest.mark.django_db
def test_a_failed_call_is_a_result_too(run, requests):
    @tool("contact-book")
    def contact_book() -> str:
        raise ValueError("Nobody has ada@example.org today.")

    registry.remove(Kind.TOOL, "contact")
    tool("contact")(contact_book)

    run(build_agent({**LISTENER, "inputProcessors": MASK}), "Hello")

    assert contents(requests[1], ToolReturnPart) == ["Nobody has [e-mail] today."]


@pytest.mark.django_db
def test_a_refused_result_ends_the_run(run, requests):
    @processor("guard", tool_results=True)
    def guard(text: str) -> str:
        if "bob" in text:
            raise KeyError(text)
        return text

    with pytest.raises(RunError, match="The processor 'guard' failed"):
        run(build_agent({**LISTENER, "inputProcessors": [{"key": "guard"}]}), "Hello")

    assert len(requests) == 1


@pytest.mark.django_db
def test_results_that_a_client_sends_are_processed(run, requests):
    history = [
        ModelRequest([UserPromptPart("Who?")]),
        ModelResponse([ToolCallPart("theirs", {}, "1")]),
        ModelRequest([ToolReturnPart("theirs", CONTACT, "1")]),
    ]

    run(build_agent({**LISTENER, "inputProcessors": MASK}), "And now?", history=history)

    assert contents(requests[0], ToolReturnPart) == [MASKED_CONTACT]


@pytest.mark.usefixtures("idle_engine")
def test_a_conversation_remembers_the_processed_texts(requests, exclaim):
    agent = AgentFactory(
        memory="last-messages",
        model=LISTENER["model"],
        tools=["contact"],
        input_processors=[*MASK, {"key": "exclaim"}],
    )
    editor = member("editor")

    first = wait_for_end(start_run(agent, editor, "I am ada@example.org", thread="t"))
    second = wait_for_end(start_run(agent, editor, "Who am I?", thread="t"))

    assert (first.status, second.status) == ("succeeded", "succeeded")
    assert "@" not in str(list(first.thread.messages.values_list("data", flat=True)))
    assert contents(requests[3], UserPromptPart) == ["I am [e-mail]!", "Who am I?!"]
    assert contents(requests[5], UserPromptPart) == ["I am [e-mail]!", "Who am I?!"]
    assert contents(requests[5], ToolReturnPart) == [MASKED_CONTACT] * 4


@pytest.mark.usefixtures("idle_engine")
def test_the_api_masks_results_of_client_tools(requests):
    AgentFactory(id="porter", model=DEMO, input_processors=MASK)
    parts = [
        {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "1", "toolName": "theirs", "args": {}}]},
        {
            "role": "tool",
            "content": [{"type": "tool-result", "toolCallId": "1", "toolName": "theirs", "result": CONTACT}],
        },
    ]

    answer = Caller(api_key(member("editor"))).post("/api/agents/porter/generate", {"messages": ["Who?", *parts]})

    assert "@" not in answer.body["text"]
    assert "[e-mail]" in answer.body["text"]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (["a", "b"], ["a", "b"]),
        (["a", "a", "a"], ["a", "a (2)", "a (3)"]),
        (["a (2)", "a", "a"], ["a (2)", "a", "a (3)"]),
        (["a", "a", "a (2)"], ["a", "a (2)", "a (2) (2)"]),
        (["a"] * 50_000, ["a", *(f"a ({number})" for number in range(2, 50_001))]),
    ],
    ids=["distinct", "equal", "taken", "taken later", "many"],
)
def test_keys_stay_distinct(keys, expected):
    assert [*distinct_keys(keys)] == expected
