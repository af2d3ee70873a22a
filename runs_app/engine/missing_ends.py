"""The ends of runs whose tasks ended without writing them, as after an error in the end itself."""

from __future__ import annotations

import asyncio
import logging
from uuid import UUID

from django.db.models import F

from agentcms.db.outages import OUTAGE_ERRORS
from runs_app.engine.run_ends import LOST_MESSAGE
from runs_app.events.stream_chunks import build_chunk
from runs_app.events.writer import EventWriter
from runs_app.models import AgentRun

log = logging.getLogger(__name__)

BROKEN_MESSAGE = "The server could not execute this run. The server log has the details."


def write_missing_end(
    writer: EventWriter, run_id: UUID, task: asyncio.Task[object], *, is_durable: bool, is_stopping: bool
) -> None:
    """Write the end of a run whose task was cancelled before it began, or failed. The lease would be renewed for ever.

    A durable run goes on later if this process stops, and after an outage of the database.
    """
    error = None if task.cancelled() else task.exception()
    if error is not None:
        log.error("Run %s ended with an unexpected error.", run_id, exc_info=error)
    if not writer.is_open(run_id):
        return
    if task.cancelled():
        end_unbegun(writer, run_id, is_durable=is_durable, is_stopping=is_stopping)
    elif is_durable and isinstance(error, OUTAGE_ERRORS):
        writer.hand_over(run_id, 0, attempts=F("attempts") + 1)
    elif error is not None:
        fail_run(writer, run_id, BROKEN_MESSAGE)


def end_unbegun(writer: EventWriter, run_id: UUID, *, is_durable: bool, is_stopping: bool) -> None:
    """Write the end of a run that was cancelled before its task began. The task could not write it."""
    if not is_stopping:
        with writer.one_commit():
            writer.add(run_id, build_chunk("abort"))
            writer.close(run_id, status=AgentRun.Status.CANCELLED)
    elif is_durable:
        writer.hand_over(run_id, 0)
    else:
        fail_run(writer, run_id, LOST_MESSAGE)


def fail_run(writer: EventWriter, run_id: UUID, message: str) -> None:
    """Write the end of a run that no task executes."""
    with writer.one_commit():
        writer.add(run_id, build_chunk("error", error={"name": "Error", "message": message}))
        writer.close(run_id, status=AgentRun.Status.FAILED, finish_reason="error", error=message)
