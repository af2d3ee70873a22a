"""The Celery beat scheduler with a heartbeat in the database."""

from __future__ import annotations

import logging
import time
from typing import Any

from celery.beat import PersistentScheduler
from django.db import Error, connection

from jobs_app.models import Heartbeat

log = logging.getLogger(__name__)

HEARTBEAT_INTERVAL = 10.0  # seconds


class HeartbeatScheduler(PersistentScheduler):
    """The scheduler of Celery, which also writes the heartbeat that /readyz checks."""

    heartbeat_at = float("-inf")

    def tick(self, *args: Any, **kwargs: Any) -> object:
        if time.monotonic() - self.heartbeat_at >= HEARTBEAT_INTERVAL:
            self.heartbeat_at = time.monotonic()
            write_scheduler_heartbeat()
        return super().tick(*args, **kwargs)


def write_scheduler_heartbeat() -> None:
    """Write the heartbeat. An unavailable database must not stop the scheduler."""
    try:
        Heartbeat.record(Heartbeat.BEAT)
    except Error as error:
        log.warning("The heartbeat of beat could not be written: %s.", type(error).__name__)
    finally:
        # Django closes connections at the end of a request or a task, and beat has neither.
        connection.close()
