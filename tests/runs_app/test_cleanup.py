"""Deletion of old runs and threads."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from jobs_app import runner
from jobs_app.cleanup import CLEAN_UP
from memory_app import tasks as memory_tasks  # noqa: F401  a worker knows them all
from memory_app.models import Thread
from runs_app import (
    cleanup,
    tasks,  # noqa: F401
)
from runs_app.models import AgentRun, RunConfiguration, RunEvent
from runs_app.models.run_configuration import UNUSED_PERIOD
from tests.factories import AgentFactory, UserFactory
from tests.runs_app.factories import PendingCallFactory, RunFactory

pytestmark = pytest.mark.django_db


def clean_up():
    return runner.run_claimed(str(runner.enqueue(CLEAN_UP).pk)).result["removed"]


def run(agent, days, **columns):
    at = timezone.now() - timedelta(days=days) if days else None
    made = AgentRun.objects.create(
        agent=agent, agent_key=agent.pk, configuration={}, input={}, finished_at=at, **columns
    )
    RunEvent.objects.create(run=made, number=1, type="chunk", data={})
    return made


def test_old_runs_are_deleted_with_events_and_sub_runs(settings):
    settings.RUN_DAYS = 30
    agent = AgentFactory()
    old = run(agent, 31)
    run(agent, 31, parent=old)
    young, going_on = run(agent, 29), run(agent, 0)

    clean_up()

    assert set(AgentRun.objects.all()) == {young, going_on}
    assert RunEvent.objects.count() == 2


def test_a_sub_agent_that_ended_long_before_its_parent_stays_with_it(settings):
    settings.RUN_DAYS = 30
    agent = AgentFactory()
    root = run(agent, 29)
    AgentRun.objects.filter(pk=root.pk).update(root_id=root.pk)
    child = run(agent, 31, parent=root, root_id=root.pk)

    clean_up()
    remaining = set(AgentRun.objects.all())
    AgentRun.objects.update(finished_at=timezone.now() - timedelta(days=31))
    clean_up()

    assert remaining == {root, child}
    assert not AgentRun.objects.exists()


def test_what_is_deleted_is_not_read(settings):
    RunFactory(finished_at=timezone.now() - timedelta(days=settings.RUN_DAYS + 1))
    RunConfiguration.objects.update(used_at=timezone.now() - UNUSED_PERIOD)

    with CaptureQueriesContext(connection) as queries:
        removed = clean_up()

    assert (removed["runs"], removed["unused run configurations"]) == (1, 1)
    read = [sql for query in queries if (sql := query["sql"]).startswith("SELECT")]
    columns = ('"runs_app_agentrun"."input"', '"runs_app_runconfiguration"."text"')
    assert not [sql for sql in read if any(column in sql.partition(" FROM ")[0] for column in columns)]


def test_old_threads_are_deleted_and_their_runs_kept(settings):
    settings.THREAD_DAYS = 365
    agent, user = AgentFactory(), UserFactory()
    old = Thread.objects.create(key="a", user=user, agent_key=agent.pk)
    Thread.objects.filter(pk=old.pk).update(updated_at=timezone.now() - timedelta(days=366))
    young = Thread.objects.create(key="b", user=user, agent_key=agent.pk)
    run_in_old_thread = run(agent, 1, thread=old)

    assert clean_up()["threads"] >= 1

    run_in_old_thread.refresh_from_db()
    assert (run_in_old_thread.thread, list(Thread.objects.all())) == (None, [young])


def test_decided_calls_are_stored_longer_than_their_runs(settings):
    settings.APPROVAL_LOG_DAYS = 730
    long_ago = timezone.now() - timedelta(days=731)
    old = PendingCallFactory(state="approved", created_at=long_ago)
    PendingCallFactory(run=old.run, created_at=long_ago)  # still waits
    PendingCallFactory(run=old.run, state="approved", created_at=timezone.now() - timedelta(days=729))

    assert list(cleanup.expired_approvals()) == [old]


def test_the_conversation_of_an_ended_run_is_cleared(settings):
    settings.RUN_STEP_DAYS = 1
    ended = RunFactory(conversation={"steps": 1}, finished_at=timezone.now() - timedelta(hours=25))
    recent = RunFactory(conversation={"steps": 1}, finished_at=timezone.now(), agent=ended.agent)
    waiting = RunFactory(suspended=True, chunks=[], conversation={"steps": 1}, agent=ended.agent)

    cleanup.clear_conversations()

    for row, conversation in ((ended, None), (recent, {"steps": 1}), (waiting, {"steps": 1})):
        row.refresh_from_db()
        assert row.conversation == conversation


def test_old_runs_stay_while_a_sub_agent_of_theirs_waits_for_a_person(settings):
    settings.RUN_DAYS = 30
    agent = AgentFactory()
    old = run(agent, 31)
    AgentRun.objects.filter(pk=old.pk).update(root_id=old.pk)
    columns = {"agent": agent, "finished_at": None, "suspended_at": timezone.now(), "root_id": old.pk}
    waiting = RunFactory(parent=old, status="suspended", chunks=[], **columns)

    clean_up()
    remaining = set(AgentRun.objects.all())
    AgentRun.objects.filter(pk=waiting.pk).update(status="succeeded", finished_at=timezone.now())
    clean_up()

    assert remaining == {old, waiting}
    assert not AgentRun.objects.exists()
