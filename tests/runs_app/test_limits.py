"""Only so many runs at once."""

import pytest

from runs_app import starting
from runs_app.models import AgentRun
from tests.api.calls import Caller
from tests.factories import AgentFactory, api_key, member
from tests.runs import DEMO, LONG, SLOW, begin, ended

pytestmark = pytest.mark.usefixtures("engine_at_rest")


@pytest.fixture
def agent():
    return AgentFactory(id="concierge", model=SLOW)


def test_a_user_has_so_many_runs_at_once(agent, settings):
    settings.RUNS_PER_USER = 1
    user = member("editor")
    run = begin(agent, user, LONG)
    other = AgentFactory(model=DEMO)

    answer = Caller(api_key(user)).post(f"/api/agents/{other.pk}/generate", {"messages": "Hello"})

    assert (answer.status_code, answer.body["code"], answer.headers["Retry-After"]) == (429, "too_many_runs", "2")
    assert answer.body["error"].startswith("You have 1 runs")
    assert AgentRun.objects.count() == 1
    starting.cancel(run)
    ended(run)
    assert ended(begin(other, user)).status == "succeeded"


def test_an_agent_has_so_many_runs_at_once(agent, settings):
    settings.RUNS_PER_AGENT = 1
    begin(agent, member("editor"), LONG)

    with pytest.raises(starting.TooManyRuns, match="This agent has 1 runs"):
        begin(agent, member("editor"))

    assert ended(begin(AgentFactory(model=DEMO), member("editor"))).status == "succeeded"


def test_the_runs_of_sub_agents_do_not_count(settings):
    settings.RUNS_PER_USER = 1
    AgentFactory(id="helper", model=DEMO)
    agent = AgentFactory(model=DEMO, agents=["helper"])

    run = ended(begin(agent, member("editor"), "Use agent-helper for this"))

    assert (run.status, run.children.get().status) == ("succeeded", "succeeded")
