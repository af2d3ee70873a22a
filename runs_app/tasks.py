"""Celery tasks of runs. Importing this module also registers the job handlers of runs."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from celery import shared_task
from celery.signals import worker_ready, worker_shutdown

from runs_app import cleanup, scoring  # noqa: F401  registers their handlers
from runs_app.engine import leases, lifecycle
from runs_app.engine.engine import get_engine
from runs_app.usage import rollup  # noqa: F401  registers its step of the clean-up


@shared_task
def reap_runs() -> None:
    """End the runs that are not durable, whose process has died, and that nobody reads."""
    leases.end_lost_runs()


@shared_task
def perform_run(run_id: str) -> None:
    """Let this worker claim a durable run if it has a free place. Return at once."""
    get_engine().offer(UUID(run_id))


@worker_ready.connect(weak=False)
def start_worker_runs(sender: Any, **kwargs: Any) -> None:
    """Let the worker execute durable runs if it consumes their queue."""
    lifecycle.start_worker({*sender.app.amqp.queues.consume_from})


@worker_shutdown.connect(weak=False)
def hand_over_worker_runs(**kwargs: Any) -> None:
    """Hand over the durable runs of this worker before it ends."""
    lifecycle.shut_down_runs()
