"""The schedule's clock, which says in the database that it is alive."""

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
    """Celery's own scheduler, seen from /readyz."""

    noted_at = float("-inf")

    def tick(self, *args: Any, **kwargs: Any) -> Any:
        if time.monotonic() - self.noted_at >= HEARTBEAT_INTERVAL:
            self.noted_at = time.monotonic()
            write_heartbeat()
        return super().tick(*args, **kwargs)


def write_heartbeat() -> None:
    """Write the heartbeat; a database that is away must not stop the clock."""
    try:
        Heartbeat.note(Heartbeat.BEAT)
    except Error as error:
        log.warning("The heartbeat of beat could not be written: %s.", type(error).__name__)
    finally:
        connection.close()
