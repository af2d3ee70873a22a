"""The memory `last-messages`."""

import asyncio
from uuid import uuid4

import pytest
from pydantic_ai import (
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from agents_app.registry import Entry, Kind, registry
from memory_app.history import messages as history
from memory_app.models import Message, Thread
from runs_app.building.agent import build_agent
from runs_app.memory.last_messages import trim_unpaired_calls
from tests.factories import UserFactory
from tests.runs_app.conftest import answer

pytestmark = pytest.mark.django_db(transaction=True)

DEMO = {"provider": "demo", "name": "echo", "delay": 0}
REMEMBERING = {"name": "Concierge", "model": DEMO, "memory": "last-messages"}


@pytest.fixture
def thread():
    return Thread.objects.create(key="t1", user=UserFactory(), agent_key="concierge")


def stored(thread):
    """Return the messages of a thread as (number, kind, first text)."""
    messages = ModelMessagesTypeAdapter.validate_python([message.data for message in thread.messages.all()])
    numbers = thread.messages.values_list("number", flat=True)
    return [(number, item.kind, item.parts[0].content) for number, item in zip(numbers, messages, strict=True)]


def test_an_agent_remembers_the_messages_of_its_thread(ask, thread):
    built = build_agent(REMEMBERING)

    ask(built, "I am Ada.", thread_id=thread.pk)
    answer = ask(built, "Who am I?", thread_id=thread.pk)

    assert "Before that: I am Ada." in answer


def test_both_sides_are_stored_in_order(ask, thread):
    built = build_agent(REMEMBERING)

    ask(built, "One", thread_id=thread.pk)
    ask(built, "Two", thread_id=thread.pk)

    assert stored(thread) == [
        (1, "request", "One"),
        (2, "response", "I am the demo model 'echo'. You said: One"),
        (3, "request", "Two"),
        (4, "response", "I am the demo model 'echo'. You said: Two Before that: One"),
    ]


def test_without_memory_or_thread_no_message_is_stored(ask, thread):
    ask(build_agent({"model": DEMO}), "One", thread_id=thread.pk)
    ask(build_agent(REMEMBERING), "Two")

    assert not Message.objects.exists()


def test_threads_are_separate(ask, thread):
    other = Thread.objects.create(key="t2", user=thread.user, agent_key="concierge")
    built = build_agent(REMEMBERING)

    ask(built, "I am Ada.", thread_id=thread.pk)

    assert "Before that" not in ask(built, "Who am I?", thread_id=other.pk)


def test_the_last_twenty_messages_are_loaded(ask, thread):
    built = build_agent(REMEMBERING)
    for number in range(12):
        ask(built, f"Message {number}", thread_id=thread.pk)

    messages = asyncio.run(answer(built, "Last", thread_id=thread.pk)).all_messages()

    assert len(messages) == 20 + 2
    assert messages[0].parts[0].content == "Message 2"


def test_tool_calls_are_stored_with_their_results(ask, thread):
    built = build_agent({**REMEMBERING, "tools": ["word-count"]})

    ask(built, 'Use word-count {"text": "a b"}', thread_id=thread.pk)
    result = asyncio.run(answer(built, "And?", thread_id=thread.pk))

    kinds = [type(part).__name__ for message in result.all_messages() for part in message.parts]
    assert kinds == ["UserPromptPart", "ToolCallPart", "ToolReturnPart", "TextPart", "UserPromptPart", "TextPart"]


def test_remembered_messages_are_not_stored_again(thread):
    built = build_agent(REMEMBERING)
    asyncio.run(answer(built, "One", thread_id=thread.pk))

    result = asyncio.run(answer(built, "Two", thread_id=thread.pk))

    assert len(result.new_messages()) == 2


def test_processors_process_a_message_once(ask, thread):
    built = build_agent({**REMEMBERING, "inputProcessors": [{"key": "mask-email"}]})

    ask(built, "I am ada@example.org", thread_id=thread.pk)
    answer = ask(built, "Who?", thread_id=thread.pk)

    assert "Before that: I am [e-mail]" in answer
    assert stored(thread)[0] == (1, "request", "I am [e-mail]")


def test_the_sent_history_is_not_stored(ask, thread):
    history = [ModelRequest([UserPromptPart("Sent before")]), ModelResponse([TextPart("Yes.")])]

    ask(build_agent(REMEMBERING), "Now", history=history, thread_id=thread.pk)

    assert [text for _, _, text in stored(thread)][0:1] == ["Now"]
    assert len(stored(thread)) == 2


def test_instructions_are_not_stored(ask, thread):
    ask(build_agent({**REMEMBERING, "instructions": "Be secret."}), "Hi", thread_id=thread.pk)

    assert [message.data.get("instructions") for message in thread.messages.all()] == [None, None]


def test_a_failed_run_stores_no_messages(thread):
    def broken(name, choice):
        from pydantic_ai.models.function import FunctionModel

        async def speak(messages, info):
            yield "Half"
            raise RuntimeError("The line went dead.")

        return FunctionModel(stream_function=speak)

    registry.add(Entry(Kind.MODEL_PROVIDER, "broken", "Broken", target=broken))
    built = build_agent({**REMEMBERING, "model": {"provider": "broken", "name": "any"}})

    with pytest.raises(RuntimeError):
        asyncio.run(answer(built, "Hi", thread_id=thread.pk))

    assert stored(thread) == []


def test_the_messages_of_a_run_are_stored_once(thread):
    run_id = uuid4()

    history.save_run_messages(thread.pk, [{"kind": "request"}], run_id)
    history.save_run_messages(thread.pk, [{"kind": "request"}], run_id)

    assert thread.messages.count() == 1


def test_a_deleted_thread_is_not_recreated(ask, thread):
    built = build_agent(REMEMBERING)
    gone = thread.pk
    thread.delete()

    assert "You said: Hi" in ask(built, "Hi", thread_id=gone)
    assert not Thread.objects.exists()


PROMPT = ModelRequest([UserPromptPart("Weather?")])
CALL = ModelResponse([ToolCallPart("weather", {}, "c1")])
RESULT = ModelRequest([ToolReturnPart("weather", "Rain", "c1")])
ANSWER = ModelResponse([TextPart("Rain.")])


@pytest.mark.parametrize(
    ("remembered", "expected", "left"),
    [
        ([PROMPT, CALL, RESULT, ANSWER], [PROMPT], [PROMPT, CALL, RESULT, ANSWER]),
        ([CALL, RESULT, ANSWER, PROMPT, ANSWER], [PROMPT], [PROMPT, ANSWER]),
        ([ANSWER], [PROMPT], []),
        ([PROMPT, ANSWER, PROMPT, CALL], [PROMPT], [PROMPT, ANSWER, PROMPT]),
        ([PROMPT, ANSWER, PROMPT, CALL], [PROMPT, CALL, RESULT], [PROMPT, ANSWER]),
        ([PROMPT, CALL, RESULT], [PROMPT], [PROMPT, CALL, RESULT]),
        ([], [PROMPT], []),
    ],
    ids=["whole", "cut off", "no prompt", "open call", "call brought along", "result last", "nothing"],
)
def test_only_messages_that_providers_accept_are_loaded(remembered, expected, left):
    assert trim_unpaired_calls(remembered, expected) == left
