"""Limits of concurrent runs, steps and tool calls."""

import pytest
from pydantic_ai._parts_manager import ModelResponsePartsManager
from pydantic_ai.models.function import DeltaToolCall

from runs_app.engine import run_ends, usage_limits
from runs_app.engine.start.concurrency_limits import TooManyRuns
from runs_app.models import AgentRun
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.runs import DEMO, LONG, SLOW, start_run, wait_for_end

pytestmark = pytest.mark.usefixtures("idle_engine")


@pytest.fixture
def agent():
    return AgentFactory(id="concierge", model=SLOW)


def test_the_number_of_runs_per_user_is_limited(agent, settings):
    settings.RUNS_PER_USER = 1
    user = member("editor")
    run = start_run(agent, user, LONG)
    other = AgentFactory(model=DEMO)

    answer = Caller(api_key(user)).post(f"/api/agents/{other.pk}/generate", {"messages": "Hello"})

    assert (answer.status_code, answer.body["code"], answer.headers["Retry-After"]) == (429, "too_many_runs", "2")
    assert answer.body["error"].startswith("You have reached the limit of 1 unfinished run.")
    assert AgentRun.objects.count() == 1
    run_ends.cancel_run(run.pk)
    wait_for_end(run)
    assert wait_for_end(start_run(other, user)).status == "succeeded"


def test_the_number_of_runs_per_agent_is_limited(agent, settings):
    settings.RUNS_PER_AGENT = 1
    start_run(agent, member("editor"), LONG)

    with pytest.raises(TooManyRuns, match="This agent has reached its limit of 1 unfinished run"):
        start_run(agent, member("editor"))

    assert wait_for_end(start_run(AgentFactory(model=DEMO), member("editor"))).status == "succeeded"


def test_the_runs_of_sub_agents_do_not_count(settings):
    settings.RUNS_PER_USER = 1
    AgentFactory(id="helper", model=DEMO)
    agent = AgentFactory(model=DEMO, agents=["helper"])

    run = wait_for_end(start_run(agent, member("editor"), "Use agent-helper for this"))

    assert (run.status, run.children.get().status) == ("succeeded", "succeeded")


def test_the_number_of_steps_is_limited(agent_with_model, settings):
    settings.RUN_MAX_TOKENS = 1000

    async def forever(messages, info):
        while True:
            yield "w" * 100  # one word of few tokens

    run = wait_for_end(start_run(agent_with_model(forever), member("editor")))

    assert (run.status, run.error) == ("failed", "The model produced too much text and was stopped.")
    assert 0 < len(run.output) <= 8500


def test_tokens_are_limited_while_the_model_answers(agent_with_model, settings):
    settings.RUN_MAX_TOKENS = 1000

    async def forever(messages, info):
        while True:
            yield "w "

    run = wait_for_end(start_run(agent_with_model(forever), member("editor")))

    assert run.status == "failed"
    assert run.error.startswith("The run reached its limit of tokens")
    assert 900 <= len(run.output.split()) <= 1250


def test_checking_tokens_takes_linear_time(agent_with_model, monkeypatch):
    read_parts, sizes = [], []
    get_parts = ModelResponsePartsManager.get_parts
    monkeypatch.setattr(
        ModelResponsePartsManager, "get_parts", lambda self: read_parts.append(sizes[-1]) or get_parts(self)
    )

    async def long(messages, info):
        for size in range(3000):
            sizes.append(size)
            yield "w "

    run = wait_for_end(start_run(agent_with_model(long), member("editor")))

    assert run.status == "succeeded"
    assert sum(read_parts) < 60 * 3000  # pieces; one check per piece would read 4,500,000


def test_the_number_of_tool_calls_is_limited(agent_with_model, monkeypatch):
    monkeypatch.setattr(usage_limits, "MAX_TOOL_CALLS", 3)

    async def many(messages, info):
        yield {place: DeltaToolCall("word-count", '{"text": "a"}', tool_call_id=f"c{place}") for place in range(4)}

    run = wait_for_end(start_run(agent_with_model(many), member("editor")))

    assert run.status == "failed"
    assert run.error.startswith("The run reached its limit of tool calls")
