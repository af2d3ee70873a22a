"""The scheduler while the clock is set back, and while the broker takes no messages."""

import errno
from collections import Counter
from datetime import UTC, datetime, timedelta
from unittest.mock import Mock

import pytest
from celery.beat import PersistentScheduler, SchedulingError

from agentcms.celery import app
from jobs_app import scheduler
from jobs_app.scheduler import HeartbeatScheduler, ScheduleFile


class Clock:
    """A clock that a test sets, and a second one that nobody sets back."""

    def __init__(self):
        self.at = datetime(2026, 1, 31, 2, 58, tzinfo=UTC)
        self.elapsed = 0.0

    def pass_by(self, seconds):
        self.at += timedelta(seconds=seconds)
        self.elapsed += seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(app, "now", lambda: clock.at)
    monkeypatch.setattr(scheduler.time, "monotonic", lambda: clock.elapsed)
    monkeypatch.setattr(scheduler, "write_scheduler_heartbeat", lambda: None)
    return clock


@pytest.fixture
def broker(monkeypatch):
    """Return what is sent. It raises an error instead while its attribute says so."""
    broker = Counter()
    broker.is_away = False

    def send(self, entry, *args, **kwargs):
        if broker.is_away:
            raise SchedulingError
        broker[entry.name] += 1

    monkeypatch.setattr(PersistentScheduler, "apply_async", send)
    return broker


@pytest.fixture
def started(tmp_path, clock, broker):
    """Return a function that starts the scheduler with its stored times."""
    running = []

    def start():
        while running:
            running.pop().close()
        running.append(HeartbeatScheduler(app=app, schedule_filename=str(tmp_path / "beat-schedule")))
        return running[0]

    yield start
    running.pop().close()


def run_for(beat, clock, seconds):
    end = clock.elapsed + seconds
    while clock.elapsed < end:
        clock.pass_by(max(beat.tick(), 0.001))


def test_every_task_is_sent_while_a_clock_that_was_set_back_catches_up(started, clock, broker):
    beat = started()
    run_for(beat, clock, 60)
    broker.clear()

    clock.at -= timedelta(hours=1)
    run_for(beat, clock, 120)

    assert broker["reap-runs"] > 20
    assert broker["send-due-jobs"] in (7, 8)
    assert broker["mail-approvers"] in (1, 2)


def test_nightly_tasks_are_sent_on_time_after_the_clock_was_a_day_ahead(started, clock, broker):
    beat = started()
    clock.at += timedelta(days=1)
    run_for(beat, clock, 60)
    clock.at -= timedelta(days=1)
    broker.clear()

    run_for(beat, clock, 180)

    assert broker["prune-versions"] == 1


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_nightly_task_is_sent_once_the_broker_is_back(started, clock, broker, is_restarted):
    beat = started()
    broker.is_away = True
    run_for(beat, clock, 600)
    broker.is_away = False
    if is_restarted:
        beat = started()

    run_for(beat, clock, 60)

    assert broker["prune-versions"] == 1
    assert broker["reap-runs"] > 10
    run_for(beat, clock, 120)
    assert broker["prune-versions"] == 2  # again, because a broker may lose it


@pytest.mark.parametrize("failing", ["nothing", "os.fsync", "pathlib.Path.replace"])
def test_a_schedule_that_cannot_be_written_leaves_the_last_one(started, clock, tmp_path, monkeypatch, failing):
    beat = started()
    run_for(beat, clock, 60)
    path = tmp_path / "beat-schedule"
    before = path.stat().st_ino

    if failing != "nothing":
        monkeypatch.setattr(failing, Mock(side_effect=OSError(errno.ENOSPC, "full")))
    beat.sync()

    assert (path.stat().st_ino == before) == (failing != "nothing")
    assert ScheduleFile(path)["entries"].keys() == beat.schedule.keys()
