"""The heartbeat of the workers that execute durable runs. Without one, web processes execute the runs themselves."""

from __future__ import annotations

import time
from threading import Lock

from cachetools import TTLCache, cached

from jobs_app.models import Heartbeat
from runs_app.models.run import DURABLE_LEASE_DURATION

HEARTBEAT_INTERVAL = 1.5  # seconds
# As long as the lease of a run: once the runs of a dead worker are queued again, nobody leaves them to it any more.
MAX_HEARTBEAT_AGE = DURABLE_LEASE_DURATION
HEARTBEAT_CACHE_TIME = 1.0  # seconds in which a process does not read the heartbeat again

_written_at = float("-inf")


def record_worker() -> None:
    """Record that a worker executes durable runs, unless this process has just done so."""
    global _written_at
    if time.monotonic() - _written_at >= HEARTBEAT_INTERVAL:
        Heartbeat.record(Heartbeat.RUN_WORKER)
        _written_at = time.monotonic()


def end_heartbeat() -> None:
    """Record that this worker stops. Those that go on write their heartbeats within seconds."""
    Heartbeat.objects.filter(name=Heartbeat.RUN_WORKER).delete()


@cached(TTLCache(1, HEARTBEAT_CACHE_TIME), lock=Lock())
def is_any_alive() -> bool:
    """Return whether a worker has lately written its heartbeat."""
    age = Heartbeat.age(Heartbeat.RUN_WORKER)
    return age is not None and age <= MAX_HEARTBEAT_AGE
