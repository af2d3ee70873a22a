"""The configurations of runs, which runs share by a hash of the content."""

from datetime import timedelta
from importlib import import_module

import pytest
from django.apps import apps
from django.db import transaction
from django.utils import timezone

from jobs_app import runner
from jobs_app.cleanup import CLEAN_UP
from runs_app import (
    cleanup,  # noqa: F401  registers what expires
    tasks,  # noqa: F401
)
from runs_app.models import AgentRun, RunConfiguration, run_configuration
from tests.factories import AgentFactory
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.django_db

migration = import_module("runs_app.migrations.0026_move_configurations")


def stored(run):
    return AgentRun.objects.get(pk=run.pk)


def test_runs_with_equal_configurations_share_a_row():
    agent = AgentFactory()
    first, second = RunFactory(agent=agent), RunFactory(agent=agent)
    third = RunFactory(agent=agent, configuration={**agent.active_version.snapshot, "instructions": "Other"})

    assert first.shared_configuration_id == second.shared_configuration_id != third.shared_configuration_id
    assert RunConfiguration.objects.count() == 2
    assert stored(second).configuration == agent.active_version.snapshot
    assert stored(third).configuration["instructions"] == "Other"


def test_the_order_of_keys_makes_no_other_configuration():
    one = RunFactory(configuration={"name": "A", "tools": ["x"], "limit": 2.0})
    other = RunFactory(configuration={"limit": 2, "tools": ["x"], "name": "A"})

    assert one.shared_configuration_id == other.shared_configuration_id


def test_a_reader_may_change_what_it_reads():
    run = RunFactory(configuration={"tools": ["x"]})
    stored(run).configuration["tools"].append("y")

    assert stored(run).configuration == {"tools": ["x"]}


def test_the_configuration_of_a_saved_run_cannot_be_changed():
    run = RunFactory(configuration={"tools": ["x"]})

    for saved in (run, stored(run)):
        with pytest.raises(AttributeError, match="Create a new run"):
            saved.configuration = {"tools": []}

    assert run.configuration == stored(run).configuration == {"tools": ["x"]}


def test_a_repeated_configuration_is_not_written_again(django_assert_num_queries, django_capture_on_commit_callbacks):
    agent = AgentFactory()
    with django_capture_on_commit_callbacks(execute=True):
        RunFactory(agent=agent)

    with django_assert_num_queries(0):
        run_configuration.save_configuration(agent.active_version.snapshot)


def test_a_configuration_of_a_rolled_back_transaction_is_written_again():
    configuration = {"name": "Rolled back"}
    with transaction.atomic():
        run_configuration.save_configuration(configuration)
        transaction.set_rollback(True)

    assert stored(RunFactory(configuration=configuration)).configuration == configuration
    assert RunConfiguration.objects.count() == 1


def test_configurations_of_deleted_runs_are_deleted_a_day_later():
    used, unused, recent = [RunFactory(configuration={"name": name}) for name in ("used", "unused", "recent")]
    unused.delete()
    recent.delete()
    long_ago = timezone.now() - timedelta(days=2)
    RunConfiguration.objects.exclude(pk=recent.shared_configuration_id).update(used_at=long_ago)

    removed = runner.run_claimed(str(runner.enqueue(CLEAN_UP).pk)).result["removed"]

    assert removed["unused run configurations"] == 1
    left = set(RunConfiguration.objects.values_list("pk", flat=True))
    assert left == {used.shared_configuration_id, recent.shared_configuration_id}


@pytest.fixture
def old_runs(monkeypatch):
    """Return runs with the configurations of the previous release: the first two equal, the last one empty."""
    monkeypatch.setattr(migration, "BATCH_SIZE", 2)
    runs = [RunFactory(configuration={}) for _ in range(5)]
    for run, name in zip(runs, ["A", "A", "B", "C"], strict=False):
        AgentRun.objects.filter(pk=run.pk).update(stored_configuration={"name": name, "tools": []})
    return runs


def test_runs_of_the_previous_release_are_read(old_runs):
    assert stored(old_runs[2]).configuration == {"name": "B", "tools": []}


def test_the_migration_moves_existing_configurations(old_runs):
    migration.move(apps, None)
    migration.move(apps, None)  # an interrupted migration is repeated

    assert RunConfiguration.objects.count() == 3
    assert [stored(run).configuration.get("name") for run in old_runs] == ["A", "A", "B", "C", None]
    assert {str(stored(run).stored_configuration) for run in old_runs} == {"{}"}
    assert RunFactory(configuration={"tools": [], "name": "A"}).shared_configuration_id == (
        stored(old_runs[0]).shared_configuration_id
    )


def test_the_migration_can_be_reversed(old_runs):
    migration.move(apps, None)

    migration.restore(apps, None)

    assert [stored(run).stored_configuration.get("name") for run in old_runs] == ["A", "A", "B", "C", None]
    assert not AgentRun.objects.exclude(shared_configuration=None).exists()
