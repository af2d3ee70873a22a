"""The workflow of Temporal and its activity. Imports temporalio, which is an optional dependency."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from temporalio import activity, workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError

from runs_app.engine.engine import get_engine
from runs_app.engine.leases import is_executed
from runs_app.engine.thread_pools import run_db

TEMPORAL_WORKFLOW = "perform-run"
ACTIVITY_HEARTBEAT_INTERVAL = 1.0  # seconds
ACTIVITY_HEARTBEAT_TIMEOUT = timedelta(seconds=4)
ACTIVITY_RETRY_INTERVAL = timedelta(seconds=1)
MAX_ACTIVITY_ATTEMPTS = 15  # longer than the lease of a run whose process was killed
ACTIVITY_GRACE = timedelta(seconds=60)


@workflow.defn(name=TEMPORAL_WORKFLOW)
class PerformRun:
    """A workflow that has a run executed."""

    @workflow.run
    async def run(self, run_id: str) -> None:
        await workflow.execute_activity(
            perform_activity,
            run_id,
            start_to_close_timeout=timedelta(seconds=settings.RUN_TIMEOUT) + ACTIVITY_GRACE,
            heartbeat_timeout=ACTIVITY_HEARTBEAT_TIMEOUT,
            retry_policy=RetryPolicy(
                initial_interval=ACTIVITY_RETRY_INTERVAL, backoff_coefficient=1, maximum_attempts=MAX_ACTIVITY_ATTEMPTS
            ),
        )


@activity.defn
async def perform_activity(run_id: str) -> None:
    """Execute a run in this process until its segment ends, unless another process executes it.

    Temporal repeats the activity while it fails: after the process of the run has died, until its lease expires.
    """
    performed = asyncio.ensure_future(asyncio.wrap_future(get_engine().perform(UUID(run_id))))
    while not performed.done():
        activity.heartbeat()
        await asyncio.wait([performed], timeout=ACTIVITY_HEARTBEAT_INTERVAL)
    if activity.info().attempt > 1 and await run_db(is_executed, UUID(run_id)):
        raise ApplicationError("Another process holds the lease of the run.")
