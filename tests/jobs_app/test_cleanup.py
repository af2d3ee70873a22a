"""Deleting old rows of growing tables."""

import os
from datetime import timedelta

import pytest
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.sessions.models import Session
from django.utils import timezone

from agentcms.celery import app
from jobs_app import cleanup, runner
from jobs_app.models import Job
from tests.factories import AgentFactory, UserFactory
from versions_app.exchange import jobs
from versions_app.models import Activation

pytestmark = pytest.mark.django_db


def days_ago(days):
    return timezone.now() - timedelta(days=days)


def clean():
    return runner.run_claimed(str(Job.objects.create(kind=cleanup.CLEAN_UP).pk)).result["removed"]


def session(key, ends):
    return Session.objects.create(session_key=key, session_data="", expire_date=ends)


def test_expired_sessions_are_deleted():
    session("ended", days_ago(1))
    session("runs", days_ago(-1))

    assert clean()["sessions"] == 1
    assert Session.objects.get().pk == "runs"


def test_finished_jobs_are_deleted_after_their_days(settings):
    settings.JOB_DAYS = 30
    Job.objects.create(kind="old", state="done", finished_at=days_ago(31))
    remaining = [
        Job.objects.create(kind="new", state="done", finished_at=days_ago(29)),
        Job.objects.create(kind="waits", created_at=days_ago(99)),
    ]

    assert clean()["jobs"] == 1
    assert {job.kind for job in Job.objects.exclude(kind=cleanup.CLEAN_UP)} == {job.kind for job in remaining}


def test_old_activations_are_deleted_except_the_newest_of_each_agent():
    often, once = AgentFactory(), AgentFactory()
    often.edit({"name": "Porter"})
    Activation.objects.update(created_at=days_ago(731))

    assert clean()["activations"] == 1
    assert often.activations.get().to_version_number == 2
    assert once.activations.get().to_version_number == 1


def test_old_admin_log_entries_are_deleted(settings):
    settings.ADMIN_LOG_DAYS = 30
    user = UserFactory()
    for _ in range(2):
        LogEntry.objects.log_actions(user.pk, [user], 2)
    LogEntry.objects.filter(pk=LogEntry.objects.first().pk).update(action_time=days_ago(31))

    assert clean()["admin log"] == 1
    assert LogEntry.objects.count() == 1


# Tables that users fill, that are deleted with other rows, or that retention limits.
CREATED_BY_USERS = {"auth.User", "auth.Group", "auth.Permission", "contenttypes.ContentType", "access_app.Membership"}
CREATED_BY_USERS |= {"access_app.ApiKey", "agents_app.Agent", "versions_app.RetentionRule", "runs_app.ModelProvider"}
CREATED_BY_USERS |= {"runs_app.SavedInput"}
DELETED_WITH_PARENT = {"agents_app.AgentIndex", "versions_app.AgentVersion", "runs_app.RunEvent", "runs_app.Score"}
DELETED_WITH_PARENT |= {"runs_app.Message", "runs_app.ScorerCount", "access_app.SignInAttempt", "jobs_app.Heartbeat"}


def test_every_growing_table_has_a_cleanup():
    app.autodiscover_tasks(force=True)  # the context of a worker
    aged = {old().model._meta.label for old in cleanup._expired_rows.values()}

    assert {model._meta.label for model in apps.get_models()} == aged | CREATED_BY_USERS | DELETED_WITH_PARENT


def test_cleanup_keeps_the_target_of_undo(settings):
    settings.AGENT_VERSION_LIMIT = 5
    agent = AgentFactory()
    agent.edit({"name": "Porter"})
    Activation.objects.update(created_at=days_ago(731))

    clean()

    assert agent.activations.get().undo().version_number == 1


def test_rows_are_deleted_in_batches(monkeypatch):
    monkeypatch.setattr(cleanup, "BATCH", 2)
    for number in range(5):
        session(f"s{number}", days_ago(1))

    assert clean()["sessions"] == 5


def test_files_of_old_exports_are_deleted(settings):
    path = jobs.exchange_folder() / "old.jsonl"
    path.write_text("{}")
    os.utime(path, (0, 0))
    recent = jobs.exchange_folder() / "new.jsonl"
    recent.write_text("{}")

    clean()

    assert (path.exists(), recent.exists()) == (False, True)
