"""Limits of unfinished runs when many start at once."""

import pytest

from agents_app.registry import Entry, Kind, registry
from runs_app.engine.start.concurrency_limits import TooManyRuns
from runs_app.models import AgentRun
from tests.concurrently import run_concurrently
from tests.factories import AgentFactory, member
from tests.runs import LONG, SLOW, start_run

pytestmark = pytest.mark.usefixtures("idle_engine")


def started(results):
    """Return the number of runs among the results. The others must be refusals."""
    runs = [result for result in results if isinstance(result, AgentRun)]
    refused = [result for result in results if isinstance(result, TooManyRuns)]
    assert len(runs) + len(refused) == len(results), results
    return len(runs)


def test_a_user_who_starts_many_agents_at_once_keeps_to_the_limit(settings):
    settings.RUNS_PER_USER = 4
    editor = member("editor")
    agents = [AgentFactory(model=SLOW) for _ in range(16)]

    results = run_concurrently([lambda agent=agent: start_run(agent, editor, LONG) for agent in agents])

    assert started(results) == AgentRun.objects.count() == 4


@pytest.mark.parametrize("source", ["stored", "code"])
def test_many_users_who_start_one_agent_at_once_keep_to_its_limit(settings, source):
    settings.RUNS_PER_AGENT = 4
    if source == "stored":
        agent_id = AgentFactory(model=SLOW).pk
    else:
        agent_id = "slow-helper"
        entry = registry.get(Kind.AGENT, "proofreader")
        registry.add(Entry(Kind.AGENT, agent_id, "Slow", target={**entry.target, "model": SLOW}))
    agent = type("Key", (), {"pk": agent_id})
    editors = [member("editor") for _ in range(16)]

    results = run_concurrently([lambda user=user: start_run(agent, user, LONG) for user in editors])

    assert started(results) == AgentRun.objects.count() == 4
