"""Answers that are stored and given to equal requests, and those that never are."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from django.core.cache import cache
from pydantic_ai import BinaryContent, ModelRequest, ModelResponse, PartStartEvent, TextPart, UserPromptPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel, FunctionStreamedResponse
from redis.exceptions import RedisError

from agents_app.registry import Entry, Kind, registry
from runs_app.building.agent import build_agent
from runs_app.response_cache import capability, store
from tests.runs_app.conftest import answer, running

pytestmark = pytest.mark.django_db

CACHE = {"key": "response-cache"}
PERSON = {"user_id": 1, "owner_id": "support"}


@pytest.fixture(autouse=True)
def empty_cache():
    cache.clear()
    yield
    cache.clear()


class CountingModel:
    """A provider whose model numbers its answers."""

    def __init__(self):
        self.requests = 0
        self.call_tool = False
        self.is_slow = False
        self.at_once = self.most_at_once = 0

    async def stream(self, messages, info):
        self.requests += 1
        number = self.requests
        if self.is_slow:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            await asyncio.sleep(0.2)
            self.at_once -= 1
        if self.call_tool and len(messages) == 1:
            yield {0: DeltaToolCall("word-count", '{"text": "a b"}', tool_call_id=f"call-{number}")}
            return
        yield f"Answer {number}"
        yield " is complete."


@pytest.fixture
def model():
    counting = CountingModel()

    def make(name, choice):
        return FunctionModel(stream_function=lambda messages, info: counting.stream(messages, info))

    registry.add(Entry(Kind.MODEL_PROVIDER, "counting", "Counting", target=make))
    yield counting
    registry.remove(Kind.MODEL_PROVIDER, "counting")


def agent(name="any", cached=CACHE, **configuration):
    configuration = {"model": {"provider": "counting", "name": name}, "inputProcessors": [cached], **configuration}
    return build_agent(configuration)


def ask(built, text="Hello", **deps):
    return asyncio.run(answer(built, text, **{**PERSON, **deps})).output


def test_an_equal_request_gets_the_stored_answer(model):
    built = agent()

    assert [ask(built), ask(built), ask(agent())] == ["Answer 1 is complete."] * 3
    assert ask(built, "Goodbye") == "Answer 2 is complete."


def test_a_stored_answer_is_streamed_as_one_text_and_costs_nothing(model):
    built = agent()
    ask(built)

    async def listen():
        async with built.agent.run_stream_events("Hello", deps=running(**PERSON)) as events:
            return [event async for event in events]

    events = asyncio.run(listen())

    assert [event.part.content for event in events if isinstance(event, PartStartEvent)] == ["Answer 1 is complete."]
    assert (events[-1].result.usage.input_tokens, events[-1].result.usage.output_tokens) == (0, 0)
    assert events[-1].result.all_messages()[-1].metadata["cache"] == "hit"


@pytest.mark.parametrize(
    "other",
    [
        {"user_id": 2},
        {"owner_id": "sales"},
        {"resource_id": 7},
        {"agent_key": "porter"},
        {"request_context": {"responseCache": {"scope": "night"}}},
        {"request_context": {"responseCache": {"key": "mine"}}},
    ],
)
def test_another_caller_scope_or_key_misses(model, other):
    built = agent()
    ask(built)

    assert ask(built, **other) == "Answer 2 is complete."


@pytest.mark.parametrize(
    "changed",
    [
        {"name": "other"},
        {"instructions": "Be brief."},
        {"tools": ["word-count"]},
        {"cached": {**CACHE, "scope": "night"}},
        {"model": {"provider": "counting", "name": "any", "temperature": 0.5}},
    ],
)
def test_another_agent_configuration_misses(model, changed):
    ask(agent())

    assert ask(agent(**changed)) == "Answer 2 is complete."


def test_equal_conversations_match_whatever_their_times_and_ids(model):
    built = agent()

    def history():
        return [ModelRequest([UserPromptPart("Hi")]), ModelResponse([TextPart("Hello.")])]

    def ask_on(messages):
        return asyncio.run(answer(built, "And now?", history=messages, **PERSON)).output

    assert ask_on(history()) == ask_on(history()) == "Answer 1 is complete."


def test_a_chosen_key_stands_for_the_messages_of_one_person_only(model):
    built = agent(cached={**CACHE, "cache_key": "greeting"})

    assert ask(built, "Hello") == ask(built, "Good day") == "Answer 1 is complete."
    assert ask(built, "Hello", user_id=2) == "Answer 2 is complete."
    assert ask(built, "Hello", owner_id="sales") == "Answer 3 is complete."
    assert ask(built, "Hello", resource_id=7) == "Answer 4 is complete."


def test_an_agent_may_share_answers_in_its_team(model):
    built = agent(cached={**CACHE, "scope": None})

    assert ask(built, user_id=1) == ask(built, user_id=2) == "Answer 1 is complete."
    assert ask(built, owner_id="sales") == "Answer 2 is complete."


def test_a_key_that_a_call_chooses_reaches_no_answers_of_others_in_its_team(model):
    built = agent(cached={**CACHE, "scope": None})
    context = {"responseCache": {"key": "greeting"}}

    assert ask(built, "Say something bad", user_id=1, request_context=context) == "Answer 1 is complete."
    assert ask(built, "Hello", user_id=2, request_context=context) == "Answer 2 is complete."
    assert ask(built, "Good day", user_id=2, request_context=context) == "Answer 2 is complete."


def test_an_agent_of_all_teams_never_shares_answers(model):
    built = agent(cached={**CACHE, "scope": None})

    assert ask(built, owner_id="", user_id=1) == "Answer 1 is complete."
    assert ask(built, owner_id="", user_id=2) == "Answer 2 is complete."


def test_a_call_may_ask_again_and_its_answer_is_stored(model):
    built = agent()
    ask(built)

    assert ask(built, request_context={"responseCache": {"bust": True}}) == "Answer 2 is complete."
    assert ask(built) == "Answer 2 is complete."


@pytest.mark.parametrize("other", [{"scope": None}, {"scope": []}, {"key": None}, {"key": {}}])
def test_a_malformed_choice_of_a_call_leaves_the_others(model, other):
    built = agent()
    ask(built)

    assert ask(built, request_context={"responseCache": {"bust": True, **other}}) == "Answer 2 is complete."


def test_a_scope_of_a_call_may_be_a_number(model):
    built = agent()

    assert ask(built, request_context={"responseCache": {"scope": 41}}) == "Answer 1 is complete."
    assert ask(built, request_context={"responseCache": {"scope": 42}}) == "Answer 2 is complete."


def test_a_malformed_choice_of_a_call_is_ignored(model):
    built = agent()

    assert ask(built, request_context={"responseCache": 5}) == ask(built) == "Answer 1 is complete."


@pytest.fixture
def stored_values(monkeypatch):
    """Return the list of values that are stored, with their seconds."""
    values = []

    class Recorded:
        def __getattr__(self, name):
            return getattr(cache, name)

        def set(self, key, value, seconds):
            values.append((value, seconds))

    monkeypatch.setattr(store, "cache", Recorded())
    return values


def test_an_answer_expires_after_the_time_of_the_agent(model, stored_values):
    ask(agent(cached={**CACHE, "ttl": 7}))

    assert [seconds for _, seconds in stored_values] == [7]


def test_invalid_arguments_are_ignored_with_a_warning(model):
    built = agent(cached={**CACHE, "ttl": 0, "scope": 5})

    assert [warning.message for warning in built.warnings] == [
        "The argument scope of 'response-cache' is ignored: its value is invalid.",
        "The argument ttl of 'response-cache' is ignored: its value is invalid.",
    ]


def test_tool_calls_are_not_stored_unless_the_agent_says_so(model):
    model.call_tool = True
    tools = {"tools": ["word-count"]}
    ask(agent(**tools))
    assert ask(agent(**tools)) == "Answer 2 is complete."  # the second step has its own answer
    assert model.requests == 3  # the call was made again

    stored = agent(cached={**CACHE, "tools": True}, **tools)
    requests = model.requests
    ask(stored)
    ask(stored)

    assert model.requests == requests + 1  # the call; the answer to its result was stored before


def test_files_are_not_compared(model):
    built = agent()

    def ask_about_file():
        prompt = ["What is this?", BinaryContent(b"pixels", media_type="image/png")]
        return asyncio.run(answer(built, prompt, **PERSON)).output

    assert ask_about_file() != ask_about_file()


def test_a_run_that_waited_for_people_is_not_cached(model):
    built = agent()

    assert ask(built, is_resumed=True) != ask(built, is_resumed=True)


def test_an_experiment_is_not_cached_unless_it_chooses_so(model):
    built = agent()
    ask(built)
    chosen = {"is_experiment": True, "request_context": {"responseCache": {}}}

    assert [ask(built, is_experiment=True) for _ in range(2)] == ["Answer 2 is complete.", "Answer 3 is complete."]
    assert ask(built, **chosen) == "Answer 1 is complete."


@pytest.mark.parametrize(
    "ended", [{"finish_reason": "length"}, {"finish_reason": "content_filter"}, {"finish_reason": "error"}]
)
def test_an_answer_that_is_cut_off_or_filtered_is_not_stored(model, monkeypatch, ended):
    """A model of functions reports no reason. So its stream gets one, where that of a provider has it."""
    get = FunctionStreamedResponse.get
    with monkeypatch.context() as patched:
        patched.setattr(FunctionStreamedResponse, "get", lambda stream: replace(get(stream), **ended))
        ask(agent())

    assert ask(agent()) == "Answer 2 is complete."


def test_a_stopped_answer_is_not_stored(model):
    built = agent()
    model.is_slow = True

    async def stop():
        asking = asyncio.create_task(answer(built, "Hello", **PERSON))
        while not model.requests:
            await asyncio.sleep(0.01)
        asking.cancel()
        await asyncio.wait([asking])

    asyncio.run(stop())

    assert ask(built) == "Answer 2 is complete."


def test_a_run_without_a_person_is_not_cached(model):
    built = agent()

    assert ask(built, user_id=None) != ask(built, user_id=None)


def test_a_failed_answer_is_not_stored(model, monkeypatch):
    async def fail(messages, info):
        yield "Answer"
        raise ValueError("The line broke.")

    with monkeypatch.context() as broken:
        broken.setattr(model, "stream", fail)
        with pytest.raises(ValueError, match="The line broke"):
            ask(agent())

    assert ask(agent()) == "Answer 1 is complete."


def test_a_reader_who_leaves_early_stores_nothing(model):
    built = agent()

    async def leave():
        async with built.agent.iter("Hello", deps=running(**PERSON)) as model_run:
            async for node in model_run:
                if built.agent.is_model_request_node(node):
                    async with node.stream(model_run.ctx) as stream:
                        async for _ in stream:
                            raise EOFError

    with pytest.raises(EOFError):
        asyncio.run(leave())

    assert ask(built) == "Answer 2 is complete."


def test_large_answers_are_not_stored(model, monkeypatch):
    monkeypatch.setattr(store, "MAX_BYTES", 20)
    built = agent()

    assert ask(built) != ask(built)


def test_the_demo_model_with_a_delay_is_always_asked():
    demo = {"provider": "demo", "name": "storyteller", "delay": 0.001}
    first = build_agent({"model": demo, "inputProcessors": [CACHE]})

    assert "ResponseCache" not in {type(item).__name__ for item in first.agent.root_capability.capabilities}


@pytest.fixture
def unavailable_cache(monkeypatch):
    class Away:
        def __getattr__(self, name):
            raise RedisError("The cache is away.")

    monkeypatch.setattr(store, "cache", Away())


def test_without_the_cache_every_request_is_a_miss(model, unavailable_cache):
    built = agent()

    assert ask(built) != ask(built)


def test_stored_answers_are_encrypted(model, stored_values):
    ask(agent())

    assert len(stored_values) == 1
    assert "Answer" not in str(stored_values)


@pytest.mark.parametrize("stored", [True, False])
def test_equal_requests_at_once_ask_once(model, stored, monkeypatch):
    if not stored:
        monkeypatch.setattr(store, "MAX_BYTES", 20)
    model.is_slow = True

    outputs = ask_twenty(agent())

    assert len(outputs) == 20
    assert model.requests == (1 if stored else 20)


def ask_twenty(built):
    async def ask_all():
        return await asyncio.gather(*(answer(built, "Hello", **PERSON) for _ in range(20)))

    return [result.output for result in asyncio.run(ask_all())]


def test_equal_requests_at_once_ask_once_in_each_process_without_the_cache(model, unavailable_cache):
    model.is_slow = True

    assert ask_twenty(agent()) == ["Answer 1 is complete."] * 20
    assert model.requests == 1
    assert ask(agent()) == "Answer 2 is complete."  # it is not stored


def test_without_the_cache_requests_wait_only_once_for_an_answer_that_is_not_repeated(
    model, unavailable_cache, monkeypatch
):
    monkeypatch.setattr(store, "MAX_BYTES", 20)
    model.is_slow = True

    outputs = ask_twenty(agent())

    assert (len({*outputs}), model.requests) == (20, 20)
    assert model.most_at_once > 1


def test_equal_requests_of_two_processes_ask_once(model):
    """Two event loops share nothing but the cache, like two processes."""
    model.is_slow = True
    built = [agent(), agent()]

    with ThreadPoolExecutor(2) as threads:
        answers = [*threads.map(ask, built)]

    assert answers == ["Answer 1 is complete."] * 2
    assert model.requests == 1


def test_the_lock_is_kept_while_the_model_answers_and_not_much_longer_by_a_killed_process(model, monkeypatch):
    assert 2 * capability.RENEW_INTERVAL < store.LOCK_SECONDS <= 15
    renewed = []
    monkeypatch.setattr(capability, "RENEW_INTERVAL", 0.02)
    monkeypatch.setattr(capability, "renew_lock", lambda key: renewed.append(store.renew_lock(key)))
    model.is_slow = True

    ask(agent())

    assert {*renewed} == {True}  # there was a lock to renew
