"""The job that prunes all agents."""

from io import StringIO

import pytest
from django.core.management import call_command

from jobs_app import runner
from jobs_app.models import Job
from tests.factories import AgentFactory
from versions_app import pruning
from versions_app.models import AgentVersion

pytestmark = pytest.mark.django_db


def agent_with(versions):
    agent = AgentFactory()
    for number in range(1, versions):
        agent.edit({"instructions": f"Edit {number}"})
    return agent


def prune(**parameters):
    return runner.run_claimed(str(Job.objects.create(kind=pruning.PRUNE, parameters=parameters).pk))


def numbers(agent):
    return sorted(agent.versions.values_list("version_number", flat=True))


def test_the_oldest_versions_over_the_limit_are_deleted():
    many, few = agent_with(8), agent_with(3)

    job = prune(limit=5)

    assert (numbers(many), numbers(few)) == ([4, 5, 6, 7, 8], [1, 2, 3])
    assert (job.result, job.done, job.total) == ({"removed": 3, "limit": 5}, 2, 2)


def test_the_limit_of_the_settings_applies_without_another_one(settings):
    agent = agent_with(5)
    settings.AGENT_VERSION_LIMIT = 3

    assert (prune().result, numbers(agent)) == ({"removed": 2, "limit": 3}, [3, 4, 5])


def test_pinned_live_head_and_previously_live_versions_are_kept():
    agent = agent_with(8)
    agent.versions.filter(version_number=2).update(pinned=True)
    agent.versions.get(version_number=3).activate()

    prune(limit=2)

    assert numbers(agent) == [2, 3, 8]


def test_a_dry_run_reports_deletions_and_reasons_to_keep():
    agent = agent_with(5)
    agent.versions.filter(version_number=1).update(pinned=True)

    result = prune(limit=3, dryRun=True).result

    assert result["versions"] == [{"agentId": agent.pk, "versionNumber": number} for number in (2, 3)]
    assert result["kept"] == {"pinned": 1, "previously live": 1, "live": 1}
    assert len(numbers(agent)) == 5


def test_a_dry_run_reports_exactly_what_pruning_deletes():
    agents = [agent_with(count) for count in (1, 4, 7)]
    agents[2].versions.get(version_number=2).activate()

    foretold = prune(limit=4, dryRun=True).result["surplus"]

    assert prune(limit=4).result["removed"] == foretold == 3


def test_few_agents_are_locked_at_once(monkeypatch):
    sizes = []
    monkeypatch.setattr(pruning, "delete_surplus", lambda agent_ids, limit: sizes.append(len(agent_ids)) or 0)
    for _ in range(101):
        AgentFactory()

    prune(limit=5)

    assert sizes == [100, 1]


def test_pruning_continues_where_a_dead_worker_stopped(monkeypatch):
    monkeypatch.setattr(pruning, "PRUNE_BATCH_SIZE", 1)
    agents = sorted([agent_with(3) for _ in range(3)], key=lambda agent: agent.pk)
    job = Job.objects.create(
        kind=pruning.PRUNE, parameters={"limit": 2}, cursor={"after": agents[0].pk, "removed": 1}, done=1
    )

    job = runner.run_claimed(str(job.pk))

    assert [len(numbers(agent)) for agent in agents] == [3, 2, 2]
    assert (job.result["removed"], job.done) == (3, 3)


def test_a_dry_run_whose_worker_died_starts_again():
    agent_with(5)
    job = Job.objects.create(kind=pruning.PRUNE, parameters={"limit": 3, "dryRun": True}, done=1, total=1)

    job = runner.run_claimed(str(job.pk))

    assert (job.result["surplus"], job.done, job.total) == (2, 1, 1)


def test_pruning_can_be_started_by_a_command():
    agent_with(6)
    output = StringIO()

    call_command("prune_versions", "--limit", "4", "--dry-run", stdout=output)
    call_command("prune_versions", "--limit", "4", stdout=output)

    assert "Would remove 2 versions" in output.getvalue()
    assert "Removed 2 versions." in output.getvalue()
    assert AgentVersion.objects.count() == 4
