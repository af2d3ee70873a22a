"""Deleting old rows of growing tables."""

import os
import time
from datetime import timedelta
from pathlib import Path

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.contrib.sessions.models import Session
from django.core.files.base import ContentFile
from django.utils import timezone

from agentcms.celery import app
from agentcms.errors import Unavailable
from jobs_app import cleanup, runner
from jobs_app.files import file_storage
from jobs_app.models import Job, JobFile, ReportRow
from tests.factories import AgentFactory, UserFactory
from versions_app.models import Activation

pytestmark = pytest.mark.django_db

MONTH = timedelta(days=30)


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
CREATED_BY_USERS |= {"runs_app.SavedInput", "runs_app.TraceRule", "runs_app.ApprovalNotice", "tools_app.McpServer"}
# Resources are deleted on request. The record of that stays, for a backup that is restored later.
CREATED_BY_USERS |= {"memory_app.Resource", "memory_app.Forgotten"}
DELETED_WITH_PARENT = {"agents_app.AgentIndex", "versions_app.AgentVersion", "runs_app.RunEvent", "runs_app.Score"}
CREATED_BY_USERS |= {"evals_app.Scorer", "evals_app.DeletedScorer"}  # one for each ID
DELETED_WITH_PARENT |= {"jobs_app.JobFile", "evals_app.ScorerVersion"}
DELETED_WITH_PARENT |= {"runs_app.BackgroundTask", "runs_app.BackgroundTaskDelivery"}
DELETED_WITH_PARENT |= {"runs_app.ScorerCount", "access_app.SignInAttempt", "jobs_app.Heartbeat", "runs_app.RunClaim"}
DELETED_WITH_PARENT |= {"memory_app.Message", "memory_app.Participant", "memory_app.WorkingRevision"}
DELETED_WITH_PARENT |= {"memory_app.Observation"}
DELETED_WITH_PARENT |= {"tools_app.McpServerVersion"}
# Knowledge bases.
CREATED_BY_USERS |= {"knowledge_app.KnowledgeBase", "knowledge_app.Document", "knowledge_app.KnowledgeIndex"}
DELETED_WITH_PARENT |= {"knowledge_app.Chunk", "knowledge_app.IndexedDocument"}
CREATED_BY_USERS |= {"tools_app.AcpAgent", "tools_app.AcpWorkspace"}
DELETED_WITH_PARENT |= {"tools_app.AcpAgentVersion", "tools_app.AcpSession"}
DELETED_WITH_PARENT |= {"tools_app.AcpPrompt", "tools_app.AcpPermission"}
# Datasets, experiments and gates.
CREATED_BY_USERS |= {"evals_app.Dataset", "evals_app.Experiment", "evals_app.ReleaseGate"}
DELETED_WITH_PARENT |= {"evals_app.DatasetItem", "evals_app.ItemVersion", "evals_app.DatasetVersion"}
DELETED_WITH_PARENT |= {"evals_app.ExperimentResult", "evals_app.Comparison"}


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
    monkeypatch.setattr(cleanup, "DELETED_PER_BATCH", 2)
    for number in range(5):
        session(f"s{number}", days_ago(1))

    assert clean()["sessions"] == 5


def stored_file(name, age):
    """Save a file that was modified so long ago."""
    saved = file_storage().save(name, ContentFile(b"{}"))
    os.utime(file_storage().path(saved), (time.time() - age.total_seconds(),) * 2)
    return saved


def test_old_files_without_a_row_are_deleted():
    job = Job.objects.create(kind="export_agents", state="done", finished_at=timezone.now())
    orphan, recent, used = (stored_file(f"{n}.jsonl", age) for n, age in enumerate([MONTH, timedelta(0), MONTH]))
    JobFile.objects.create(job=job, name=used, size=2)
    temporary = settings.FILE_UPLOAD_TEMP_DIR / "killed.upload"
    temporary.write_text("{}")
    os.utime(temporary, (0, 0))

    clean()

    assert [file_storage().exists(name) for name in (orphan, recent, used)] == [False, True, True]
    assert not temporary.exists()


def test_the_file_and_report_of_an_old_job_are_deleted(django_capture_on_commit_callbacks):
    job = Job.objects.create(kind="export_agents", state="done", finished_at=days_ago(31))
    name = stored_file("old.jsonl", MONTH)
    JobFile.objects.create(job=job, name=name, size=2, used_at=days_ago(31))
    for number in range(3):
        ReportRow.objects.create(job=job, number=number, action="create", content={})

    with django_capture_on_commit_callbacks(execute=True):
        removed = clean()

    assert (removed["jobs"], removed["job reports"]) == (1, 3)
    assert not file_storage().exists(name)


def test_an_old_export_that_was_requested_again_is_kept():
    job = Job.objects.create(kind="export_agents", state="done", finished_at=days_ago(31))
    JobFile.objects.create(job=job, name="again.jsonl", size=2)
    ReportRow.objects.create(job=job, number=0, action="create", content={})

    removed = clean()

    assert (removed["jobs"], removed["job reports"]) == (0, 0)


def test_a_temporary_file_that_an_upload_moves_at_this_moment_is_left_out(monkeypatch):
    temporary = settings.FILE_UPLOAD_TEMP_DIR / "killed.upload"
    temporary.write_text("{}")
    os.utime(temporary, (0, 0))
    listed = Path.iterdir
    monkeypatch.setattr(Path, "iterdir", lambda folder: iter([folder / "moved.upload", *listed(folder)]))

    clean()

    assert not temporary.exists()


FAILURES = [(PermissionError("denied"), Job.State.FAILED), (Unavailable("away"), Job.State.RUNNING)]


@pytest.mark.parametrize(("error", "state"), FAILURES)
def test_a_table_that_fails_keeps_back_no_other_table_and_no_step(monkeypatch, error, state):
    done = []

    def fail():
        raise error

    monkeypatch.setitem(cleanup._expired_rows, "a table", fail)
    monkeypatch.setattr(cleanup, "_steps", [lambda: done.append(True)])
    session("ended", days_ago(1))

    job = runner.run_claimed(str(Job.objects.create(kind=cleanup.CLEAN_UP).pk))

    job.refresh_from_db()
    assert (done, job.state, Session.objects.exists()) == ([True], state, False)


@pytest.mark.parametrize(("error", "state"), FAILURES)
def test_a_first_step_that_fails_is_named_and_keeps_back_the_clean_up(monkeypatch, caplog, error, state):
    def read_rows():
        yield 1
        raise error

    monkeypatch.setattr(cleanup, "_first_steps", [read_rows])
    session("ended", days_ago(1))

    job = runner.run_claimed(str(Job.objects.create(kind=cleanup.CLEAN_UP).pk))

    job.refresh_from_db()
    assert (job.state, Session.objects.exists()) == (state, True)
    assert f"The step read_rows of the clean-up failed: {type(error).__name__}" in caplog.text


@pytest.mark.parametrize(("error", "state"), FAILURES)
def test_a_step_that_fails_keeps_back_no_other_step(monkeypatch, error, state):
    done = []

    def fail():
        raise error

    monkeypatch.setattr(cleanup, "_steps", [fail, lambda: done.append(True)])

    job = runner.run_claimed(str(Job.objects.create(kind=cleanup.CLEAN_UP).pk))

    job.refresh_from_db()
    assert (done, job.state) == ([True], state)
    assert ("PermissionError" in job.error) is (state == Job.State.FAILED)
