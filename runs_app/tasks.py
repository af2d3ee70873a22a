"""Celery tasks of runs. Importing this module also registers the job handlers of runs."""

from __future__ import annotations

import logging
from threading import Thread
from typing import Any
from uuid import UUID

from celery import shared_task
from celery.exceptions import WorkerShutdown
from celery.signals import worker_init, worker_ready, worker_shutdown, worker_shutting_down

from agentcms.logs import describe_service_error
from runs_app import cleanup, partitions, scoring  # noqa: F401  registers their handlers
from runs_app.background import jobs as background_jobs  # noqa: F401  registers its handler
from runs_app.background.maintenance import maintain_tasks
from runs_app.engine import engine, lifecycle, run_ends
from runs_app.memory import observing, titling  # noqa: F401  registers their handlers
from runs_app.notices import mail, webhook  # noqa: F401  registers the handler of the webhook
from runs_app.privacy import forgetting, jobs  # noqa: F401  registers their handlers
from runs_app.usage import daily_rollup  # noqa: F401  registers its step of the clean-up

log = logging.getLogger(__name__)


@shared_task
def reap_runs() -> None:
    """End what dead processes left: runs that are not durable, and child runs that wait for people."""
    run_ends.end_lost_runs()
    run_ends.cancel_abandoned_children()


@shared_task
def look_after_background_tasks() -> None:
    """Continue background tasks that a process left between two steps."""
    maintain_tasks()


@shared_task
def mail_approvers() -> None:
    """Notify people by e-mail of calls that wait for them."""
    mail.send_mail_to_approvers()


@shared_task
def perform_run(run_id: str) -> None:
    """Let this worker claim a durable run if it has a free slot. Return at once."""
    engine.get_engine().offer(UUID(run_id))


@worker_init.connect(weak=False)
def preload_runs(**kwargs: Any) -> None:
    """Import what runs and many jobs need, before the worker starts its threads."""
    engine.preload()


@worker_ready.connect(weak=False)
def start_worker_runs(sender: Any, **kwargs: Any) -> None:
    """Let the worker execute durable runs if it consumes their queue. End it if it cannot."""
    try:
        lifecycle.start_worker({*sender.app.amqp.queues.consume_from})
    except Exception as error:  # each engine has errors of its own
        # Celery logs an error of a signal and goes on, with a worker that looks healthy but executes no run.
        log.critical("This worker cannot execute runs and ends: %s", describe_service_error(error))
        raise WorkerShutdown(1) from error


_hand_over = Thread(target=lifecycle.shut_down_worker, name="run-hand-over", daemon=True)


@worker_shutting_down.connect(weak=False)
def begin_hand_over(**kwargs: Any) -> None:
    """Hand over the durable runs of this worker while it waits for the ends of its jobs, which may take long."""
    if not _hand_over.is_alive():
        _hand_over.start()


@worker_shutdown.connect(weak=False)
def finish_hand_over(**kwargs: Any) -> None:
    """Wait until the runs are handed over."""
    if _hand_over.is_alive():
        _hand_over.join()
    else:
        lifecycle.shut_down_worker()
