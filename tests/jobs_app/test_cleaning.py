"""Tables that grow are kept to an age."""

import os
from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.utils import timezone

from jobs_app import cleaning, work
from jobs_app.models import Job
from jobs_app.tasks import clean_up
from tests.factories import AgentFactory
from versions_app import exchange
from versions_app.models import Activation

pytestmark = pytest.mark.django_db


def days_ago(days):
    return timezone.now() - timedelta(days=days)


def clean():
    return work.run(str(Job.objects.create(kind=cleaning.CLEAN_UP).pk)).result["removed"]


def session(key, ends):
    return Session.objects.create(session_key=key, session_data="", expire_date=ends)


def test_sessions_that_ended_go():
    session("ended", days_ago(1))
    session("runs", days_ago(-1))

    assert clean()["sessions"] == 1
    assert Session.objects.get().pk == "runs"


def test_finished_jobs_go_after_their_days_and_others_stay(settings):
    settings.JOB_DAYS = 30
    Job.objects.create(kind="old", state="done", finished_at=days_ago(31))
    kept = [
        Job.objects.create(kind="new", state="done", finished_at=days_ago(29)),
        Job.objects.create(kind="waits", created_at=days_ago(99)),
    ]

    assert clean()["jobs"] == 1
    assert {job.kind for job in Job.objects.exclude(kind=cleaning.CLEAN_UP)} == {job.kind for job in kept}


def test_old_moves_of_live_go_but_the_newest_of_each_agent_stays():
    often, once = AgentFactory(), AgentFactory()
    often.edit({"name": "Porter"})
    Activation.objects.update(created_at=days_ago(731))

    assert clean()["activations"] == 1
    assert often.activations.get().to_version_number == 2
    assert once.activations.get().to_version_number == 1


def test_undo_still_has_its_target_after_a_clean_up(settings):
    settings.AGENT_VERSION_LIMIT = 5
    agent = AgentFactory()
    agent.edit({"name": "Porter"})
    Activation.objects.update(created_at=days_ago(731))

    clean()

    assert agent.activations.get().undo().version_number == 1


def test_many_rows_go_a_few_at_a_time(monkeypatch):
    monkeypatch.setattr(cleaning, "BATCH", 2)
    for number in range(5):
        session(f"s{number}", days_ago(1))

    assert clean()["sessions"] == 5


def test_the_schedule_cleans_up_once_however_many_beats_there_are():
    clean_up()
    clean_up()

    assert Job.objects.filter(kind=cleaning.CLEAN_UP).count() == 1


def test_files_of_old_exports_go(settings):
    path = exchange.folder() / "old.jsonl"
    path.write_text("{}")
    os.utime(path, (0, 0))
    kept = exchange.folder() / "new.jsonl"
    kept.write_text("{}")

    clean()

    assert (path.exists(), kept.exists()) == (False, True)
