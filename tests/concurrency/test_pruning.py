"""Pruning during concurrent activations, restores and saves."""

from functools import partial

import pytest

from agents_app.models import Agent
from jobs_app import runner
from jobs_app.models import Job
from tests.concurrency.test_writers import act_if_possible, check_agent, failures
from tests.concurrently import run_concurrently
from tests.factories import AgentFactory
from versions_app import pruning
from versions_app.models import AgentVersion

pytestmark = pytest.mark.django_db(transaction=True)

AGENTS, VERSIONS, LIMIT = 6, 8, 5


@pytest.fixture
def agents_over_limit(settings, monkeypatch):
    """Create agents over the limit. Saves do not prune them, and pruning takes two per batch."""
    settings.AGENT_VERSION_LIMIT = 1000
    monkeypatch.setattr(pruning, "PRUNE_BATCH_SIZE", 2)
    for number in range(AGENTS):
        edit_often(AgentFactory(id=f"a{number}").pk, VERSIONS - 1)


def edit_often(agent_id, times):
    for number in range(times):
        Agent(pk=agent_id).edit({"description": f"{agent_id}/{number}/{times}"})


def prune_often(times=15):
    return [prune().state for _ in range(times)]


def prune():
    return runner.run_claimed(str(Job.objects.create(kind=pruning.PRUNE, parameters={"limit": LIMIT}).pk))


def act_on_oldest_version(agent_id, verb, times=15):
    """Publish or restore the oldest versions. Return how many still existed."""

    def act():
        version = AgentVersion.objects.filter(agent=agent_id).last()
        getattr(version, verb)()

    return sum(act_if_possible(act) for _ in range(times))


def test_pruning_breaks_no_activation_and_no_save(agents_over_limit):
    acts = [partial(edit_often, "a0", 20), partial(edit_often, "a1", 20), prune_often]
    acts += [partial(act_on_oldest_version, f"a{number}", "activate") for number in (0, 2, 3)]
    acts += [partial(act_on_oldest_version, f"a{number}", "restore") for number in (1, 4)]

    answers = run_concurrently(acts)

    assert failures(answers) == []
    assert set(answers[2]) == {"done"}
    assert all(done for done in answers[3:])
    assert prune().state == "done"
    assert [check_agent(f"a{number}").versions.count() for number in range(AGENTS)] == [LIMIT] * AGENTS
