"""The Celery beat scheduler with a heartbeat in the database."""

from __future__ import annotations

import logging
import os
import pickle
import time
from pathlib import Path
from typing import Any, ClassVar

from celery.beat import PersistentScheduler, ScheduleEntry, SchedulingError
from celery.schedules import crontab
from django.db import Error, connection

from jobs_app.models import Heartbeat

log = logging.getLogger(__name__)

HEARTBEAT_INTERVAL = 10.0  # seconds
RETRY_INTERVAL = 30.0  # seconds after which a nightly task that could not be sent is sent again


class ScheduleFile(dict[str, Any]):
    """The times that beat stores. The file is written as a whole, so that a killed process leaves the last one.

    The files of `shelve`, which Celery uses, were often damaged then, and nobody caught up on the night.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(pickle.loads(path.read_bytes()) if path.exists() else {})  # noqa: S301  beat wrote it

    @classmethod
    def open(cls, filename: str, writeback: bool) -> ScheduleFile:
        return cls(Path(filename))

    def sync(self) -> None:
        """Write the file. Log why if it cannot be written: that must not stop beat."""
        new = self.path.with_name(f"{self.path.name}.new")
        try:
            with new.open("wb") as file:
                file.write(pickle.dumps(dict(self)))
                file.flush()
                os.fsync(file.fileno())
            new.replace(self.path)
        except OSError as error:
            log.warning("The schedule of beat could not be stored: %s.", error.strerror)

    def close(self) -> None:
        """Do nothing: beat has synchronized the file before."""


class HeartbeatScheduler(PersistentScheduler):
    """The scheduler of Celery, which also writes the heartbeat that /readyz checks.

    It goes on after the clock was set back, and sends a nightly task again that the broker did not take.
    """

    persistence: ClassVar = ScheduleFile
    heartbeat_at = float("-inf")
    retry_at = float("inf")

    def tick(self, *args: Any, **kwargs: Any) -> object:
        now = time.monotonic()
        if now - self.heartbeat_at >= HEARTBEAT_INTERVAL:
            self.heartbeat_at = now
            write_scheduler_heartbeat()
        if now >= self.retry_at:
            self.retry_at = float("inf")
            self.plan_again()
        self.forget_later_times()
        return super().tick(*args, **kwargs)

    def plan_again(self) -> None:
        """Let Celery look at all tasks: it has computed before when each of them is due."""
        self._heap = None

    def forget_later_times(self) -> None:
        """Begin again if the clock was set back. No task would be due before it is as late as it was."""
        now = self.app.now()
        ahead = [entry for entry in self.schedule.values() if entry.last_run_at > now]
        for entry in ahead:
            entry.last_run_at = now
        if ahead:
            self.plan_again()

    def apply_async(self, entry: ScheduleEntry, *args: Any, **kwargs: Any) -> object:
        """Send a task. One of the night that cannot be sent stays due, also after a restart."""
        try:
            return super().apply_async(entry, *args, **kwargs)
        except SchedulingError:
            if isinstance(entry.schedule, crontab):  # the others are soon due anyway
                self.schedule[entry.name].last_run_at = entry.last_run_at
                self.retry_at = time.monotonic() + RETRY_INTERVAL
            raise


def write_scheduler_heartbeat() -> None:
    """Write the heartbeat. An unavailable database must not stop the scheduler."""
    try:
        Heartbeat.record(Heartbeat.BEAT)
    except Error as error:
        log.warning("The heartbeat of beat could not be written: %s.", type(error).__name__)
    finally:
        # Django closes connections at the end of a request or a task, and beat has neither.
        connection.close()
