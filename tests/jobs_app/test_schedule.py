"""The schedule of nightly jobs."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from agentcms.schedule import nightly
from jobs_app.models import Job
from jobs_app.tasks import clean_up
from tests.settings_file import evaluate_settings
from versions_app.tasks import check_history, prune_versions

NIGHTLY = [prune_versions, check_history, clean_up]


def start_times(tmp_path, monkeypatch, hour):
    """Return hour and first minute of each nightly job for this value of the setting."""
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    monkeypatch.setenv("NIGHTLY_HOUR", str(hour))
    schedule = evaluate_settings()["CELERY_BEAT_SCHEDULE"]
    clocks = {name.replace("-", "_"): entry["schedule"] for name, entry in schedule.items()}
    return {task.__name__: (*clocks[task.__name__].hour, min(clocks[task.__name__].minute)) for task in NIGHTLY}


def test_nightly_jobs_start_at_three(tmp_path, monkeypatch):
    expected = {"prune_versions": (3, 0), "check_history": (3, 30), "clean_up": (4, 0)}
    assert start_times(tmp_path, monkeypatch, "") == expected


def test_nightly_jobs_start_at_the_configured_hour_and_may_pass_midnight(tmp_path, monkeypatch):
    expected = {"prune_versions": (23, 0), "check_history": (23, 30), "clean_up": (0, 0)}
    assert start_times(tmp_path, monkeypatch, 23) == expected


@pytest.mark.django_db
@pytest.mark.parametrize("task", NIGHTLY, ids=lambda task: task.__name__)
@pytest.mark.parametrize("hour", [0, 3, 12])
@pytest.mark.parametrize("minute", [0, 30])
def test_repeats_of_two_schedulers_with_different_clocks_create_one_job(monkeypatch, task, hour, minute):
    minutes = sorted(nightly(hour, minute).minute)
    on_time, last = (datetime(2026, 1, 31, hour, at, tzinfo=UTC) for at in (minutes[0], minutes[-1]))
    assert len(minutes) == 3
    for at in (on_time - timedelta(seconds=1), on_time, last + timedelta(seconds=1)):
        monkeypatch.setattr(timezone, "now", lambda at=at: at)
        task()

    assert Job.objects.filter(kind=task.__name__).count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize("task", NIGHTLY, ids=lambda task: task.__name__)
def test_the_next_night_creates_another_job(monkeypatch, task):
    for day in (30, 31):
        monkeypatch.setattr(timezone, "now", lambda day=day: datetime(2026, 1, day, 3, tzinfo=UTC))
        task()

    assert Job.objects.filter(kind=task.__name__).count() == 2
