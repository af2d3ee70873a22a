"""Input and output processors."""

import asyncio

import pytest
from django.core.exceptions import ValidationError
from pydantic_ai import ModelRequest, ModelResponse, PartStartEvent, TextPart, ThinkingPart, UserPromptPart
from pydantic_ai.models.function import DeltaThinkingPart, FunctionModel

from agents_app.registry import Entry, Kind, processor, registry
from runs_app.building.agent import build_agent
from runs_app.exceptions import RunError
from tests.runs_app.conftest import running

pytestmark = pytest.mark.django_db

DEMO = {"provider": "demo", "name": "echo", "delay": 0}
MASK = [{"key": "mask-email"}]


@pytest.fixture
def thinking_provider():
    """Register a provider whose model emits a thinking part before the text."""

    async def speak(messages, info):
        yield {0: DeltaThinkingPart(content="ada@example.org, I believe.")}
        for word in ("Write to ", "ada@example", ".org, please. "):
            yield word

    model = FunctionModel(stream_function=speak)
    registry.add(Entry(Kind.MODEL_PROVIDER, "thinker", "Thinker", target=lambda name, choice: model))
    return {"provider": "thinker", "name": "any"}


def all_events(built):
    """Return all events of an answer."""

    async def listen():
        async with built.agent.run_stream_events("Whom?", deps=running()) as events:
            return [event async for event in events]

    return asyncio.run(listen())


def test_the_model_gets_the_output_of_input_processors(ask):
    answer = ask(build_agent({"model": DEMO, "inputProcessors": MASK}), "I am ada@example.org")

    assert "You said: I am [e-mail]" in answer


def test_input_processors_process_the_sent_history(ask):
    history = [ModelRequest([UserPromptPart("I am ada@example.org")]), ModelResponse([TextPart("Hello.")])]

    answer = ask(build_agent({"model": DEMO, "inputProcessors": MASK}), "And now?", history=history)

    assert "Before that: I am [e-mail]" in answer


def test_readers_get_the_output_of_output_processors(thinking_provider):
    events = all_events(
        build_agent({"model": thinking_provider, "outputProcessors": [*MASK, {"key": "trim-whitespace"}]})
    )

    assert events[-1].result.output == "Write to [e-mail], please."
    parts = [event.part for event in events if isinstance(event, PartStartEvent)]
    assert parts == [TextPart("Write to [e-mail], please.")]


def test_unprocessed_text_is_not_streamed(thinking_provider):
    events = all_events(build_agent({"model": thinking_provider, "outputProcessors": MASK}))

    assert "ada@example" not in str(events[:-1])


def test_without_output_processors_text_is_streamed(thinking_provider):
    events = all_events(build_agent({"model": thinking_provider}))

    assert any(isinstance(event, PartStartEvent) and isinstance(event.part, ThinkingPart) for event in events)
    assert len(events) > 6


def test_processors_run_in_their_configured_order(ask):
    @processor("exclaim")
    def exclaim(text: str, sign: str = "!") -> str:
        return text + sign

    chosen = [{"key": "exclaim", "sign": "?"}, {"key": "exclaim"}, {"key": "exclaim", "sign": ".", "colour": "red"}]

    assert "You said: What?!." in ask(build_agent({"model": DEMO, "inputProcessors": chosen}), "What")


def test_a_processor_can_be_asynchronous(ask):
    @processor("whisper")
    async def whisper(text: str) -> str:
        return text.lower()

    assert "You said: hush" in ask(build_agent({"model": DEMO, "inputProcessors": [{"key": "whisper"}]}), "HUSH")


@pytest.mark.parametrize(
    ("does", "sentence"),
    [
        (ValidationError("Speak of this."), "The processor 'guard' stopped the run. Speak of this."),
        (KeyError("sk-secret"), "The processor 'guard' failed, so the run was stopped."),
        (SystemExit("now"), "The processor 'guard' failed, so the run was stopped."),
        (7, "The processor 'guard' did not return a text, so the run was stopped."),
    ],
    ids=["refusal", "fault", "exit", "no text"],
)  # fmt: skip
@pytest.mark.parametrize("side", ["inputProcessors", "outputProcessors"])
@pytest.mark.parametrize("is_async", [False, True])
def test_text_that_a_processor_refuses_is_not_used(ask, does, sentence, side, is_async):
    def guard(text: str) -> str:
        if isinstance(does, BaseException):
            raise does
        return does

    async def guard_later(text: str) -> str:
        return guard(text)

    processor("guard")(guard_later if is_async else guard)

    with pytest.raises(RunError) as stopped:
        ask(build_agent({"model": DEMO, side: [{"key": "guard"}]}), "Hello")

    assert stopped.value.message == sentence


def test_tools_are_called_with_output_processors(run):
    built = build_agent({"model": DEMO, "tools": ["word-count"], "outputProcessors": MASK})

    assert run(built, 'Use word-count {"text": "a b"}').output.endswith("word-count says 2.")
