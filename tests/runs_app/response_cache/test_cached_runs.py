"""Runs whose answers come from the response cache: events, usage, pages and metrics."""

import pytest
from django.core.cache import cache
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from agents_app.registry import Entry, Kind, registry
from runs_app.models import AgentRun, ModelProvider
from runs_app.response_cache.store import answer_looked_up
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.runs import chunks, wait_for_end
from tests.runs_app.providers.conftest import provider_stub, running_provider_stub  # noqa: F401  fixtures

pytestmark = pytest.mark.usefixtures("idle_engine")

GENERATE = "/api/agents/concierge/generate"


@pytest.fixture(autouse=True)
def empty_cache():
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def requests():
    """Register a model that records its requests, and an agent that caches its answers."""
    made = []

    async def answer(messages, info):
        made.append(len(messages))
        if info.output_tools:
            yield {0: DeltaToolCall("structured_output", '{"number": 1}', tool_call_id="call")}
            return
        if info.function_tools:
            yield {0: DeltaToolCall("send-notice", '{"recipient": "Ann", "message": "Hello"}', tool_call_id="call")}
            return
        yield f"Answer {len(made)}."

    entry = Entry(
        Kind.MODEL_PROVIDER, "counting", "Counting", target=lambda name, choice: FunctionModel(stream_function=answer)
    )
    registry.add(entry)
    yield made
    registry.remove(Kind.MODEL_PROVIDER, "counting")


@pytest.fixture
def agent():
    model = {"provider": "counting", "name": "any"}
    return AgentFactory(id="concierge", model=model, input_processors=[{"key": "response-cache"}])


@pytest.fixture
def user():
    return member("editor")


@pytest.fixture
def editor(user):
    return Caller(api_key(user))


@pytest.fixture
def results():
    """Return the list of results of lookups, which /metrics counts."""
    lookups = []

    def record(result, **kwargs):
        lookups.append(result)

    answer_looked_up.connect(record)
    yield lookups
    answer_looked_up.disconnect(record)


def last_run():
    return AgentRun.objects.order_by("created_at").last()


@pytest.mark.parametrize("durable", [False, True])
def test_a_cached_answer_says_so_and_costs_nothing(editor, requests, agent, results, durable):
    first = editor.post(GENERATE, {"messages": "Hello", "durable": durable}).body
    second = editor.post(GENERATE, {"messages": "Hello", "durable": durable}).body

    assert (first["text"], second["text"], len(requests)) == ("Answer 1.", "Answer 1.", 1)
    assert second["usage"] == {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}
    assert not second["cost"]
    run = last_run()
    (step,), (finish,) = chunks(run, "step-finish"), chunks(run, "finish")
    assert (step["payload"]["metadata"]["cache"], finish["payload"]["metadata"]["cache"]) == ("hit", "hit")
    assert [chunk["type"] for chunk in chunks(run) if "text" in chunk["type"]] == [
        "text-start",
        "text-delta",
        "text-end",
    ]
    assert results == ["miss", "hit"]


def test_the_answers_of_a_run_that_waits_for_people_are_not_stored(editor, requests, agent):
    cached = {"key": "response-cache", "tools": True}
    agent.edit({"input_processors": [cached], "tools": ["send-notice"]})

    for _ in range(2):
        assert editor.post(GENERATE, {"messages": "Hello", "durable": True}).body["finishReason"] == "suspended"

    assert len(requests) == 2


def test_a_header_asks_the_model_again(editor, requests, agent, results):
    editor.post(GENERATE, {"messages": "Hello"})
    again = editor.post(GENERATE, {"messages": "Hello"}, X_Cache_Bust="1").body
    after = editor.post(GENERATE, {"messages": "Hello"}).body

    assert (again["text"], after["text"]) == ("Answer 2.", "Answer 2.")
    assert results == ["miss", "bust", "hit"]


def test_another_user_gets_an_answer_of_their_own(editor, requests, agent):
    editor.post(GENERATE, {"messages": "Hello"})
    other = Caller(api_key(member("editor")))

    assert other.post(GENERATE, {"messages": "Hello"}).body["text"] == "Answer 2."


def test_the_page_of_a_run_marks_a_cached_answer(editor, user, requests, agent, client):
    client.force_login(user)
    editor.post(GENERATE, {"messages": "Hello"})
    first = client.get(f"/runs/{last_run().pk}").content.decode()
    editor.post(GENERATE, {"messages": "Hello"})
    second = client.get(f"/runs/{last_run().pk}").content.decode()

    assert ("Cached answer" in first, "Cached answer" in second) == (False, True)


def test_a_streamed_call_gets_the_answer_that_was_generated(editor, requests, agent):
    generated = editor.post(GENERATE, {"messages": "Hello"}).body

    answer = editor.client.post("/api/agents/concierge/stream", {"messages": "Hello"}, content_type="application/json")
    text = b"".join(answer.streaming_content).decode()
    wait_for_end(last_run())

    assert (generated["text"], len(requests)) == ("Answer 1.", 1)
    assert '"text":"Answer 1."' in text.replace(": ", ":")
    assert '"cache":"hit"' in text.replace(": ", ":")


def test_another_schema_of_the_answer_misses(editor, requests, agent):
    def ask(**properties):
        schema = {"type": "object", "properties": properties}
        return editor.post(GENERATE, {"messages": "Hello", "structuredOutput": {"schema": schema}}).body["object"]

    numbers = [ask(number={"type": "integer"}), ask(number={"type": "integer"})]
    assert (numbers, len(requests)) == ([{"number": 1}] * 2, 1)
    ask(number={"type": "number"})

    assert len(requests) == 2


@pytest.mark.parametrize("cached", [{}, {"tools": True}], ids=["text alone", "tool calls too"])
def test_an_object_that_does_not_fit_is_not_stored(editor, requests, agent, cached):
    """Otherwise each repeated request would fail until the answer expires."""
    agent.edit({"input_processors": [{"key": "response-cache", **cached}]})
    schema = {"type": "object", "properties": {"number": {"type": "string"}}}
    body = {"messages": "Hello", "structuredOutput": {"schema": schema}}

    assert editor.post(GENERATE, body).status_code == 424
    first_requests = len(requests)
    assert editor.post(GENERATE, body).status_code == 424

    assert len(requests) == 2 * first_requests


@pytest.mark.parametrize("change", ["key", "address"])
def test_another_key_or_address_of_the_provider_misses(editor, provider_stub, change):  # noqa: F811
    """A person who sees another account or server must not read what the earlier one answered."""
    row = ModelProvider(key="house", title="House", base_url=f"{provider_stub.url}/v1")
    row.set_secret("sk-first")
    row.save()
    model = {"provider": "house", "name": "any"}
    AgentFactory(id="concierge", model=model, input_processors=[{"key": "response-cache"}])

    def ask():
        editor.post(GENERATE, {"messages": "Hello"})
        return len(provider_stub.received_requests())

    before = [ask(), ask()]
    if change == "key":
        row.set_secret("sk-second")
    else:
        row.base_url = row.base_url.replace("127.0.0.1", "localhost")
    row.save()

    assert (before, [ask(), ask()]) == ([1, 1], [2, 2])
