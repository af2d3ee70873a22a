"""One event loop per process, on which its runs answer. It is given ids: all that a run needs is in its row."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Coroutine
from importlib import import_module
from typing import Any, TypeVar
from uuid import UUID

from agentcms.shutdown import on_shutdown
from runs_app.engine.leases import holder_name
from runs_app.engine.threads import run_blocking
from runs_app.events import streams
from runs_app.events.notifications import wakeups
from runs_app.events.writer import EventWriter

log = logging.getLogger(__name__)

PERFORMING = "runs_app.engine.execute"
PATIENCE = 2.0  # seconds to write how the runs ended when the process is asked to stop

Result = TypeVar("Result")


class Engine:
    """The loop in its thread, and the tasks on it."""

    def __init__(self) -> None:
        self.holder = holder_name()
        self.writer = EventWriter(self.holder, self.cancel)
        self.tasks: dict[UUID, asyncio.Task[Any]] = {}
        self.is_stopping = False
        wakeups.stop = self.cancel
        wakeups.listen()
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, name="run-loop", daemon=True).start()

    def submit(self, run_id: UUID) -> None:
        """Answer a run that waits, whoever stored it."""
        self.writer.open(run_id)  # it is held from now on, however long what follows takes
        asyncio.run_coroutine_threadsafe(self._take(run_id), self.loop)

    async def _take(self, run_id: UUID) -> None:
        # It imports pydantic-ai, which takes a second: nobody's request waits for it.
        performing = await run_blocking(import_module, PERFORMING)
        if self.is_stopping:
            return  # its lease runs out, and whoever reads it ends it
        self.run_task(run_id, performing.execute_run(self, run_id))

    def run_task(self, run_id: UUID, performance: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        """A task for a run; on the loop alone."""
        task = self.loop.create_task(performance, name=f"run {run_id}")
        self.tasks[run_id] = task
        task.add_done_callback(lambda done: self._finished(run_id, done))
        return task

    def _finished(self, run_id: UUID, task: asyncio.Task[Any]) -> None:
        self.tasks.pop(run_id, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("Run %s could not be carried to its end.", run_id, exc_info=error)

    def cancel(self, run_id: UUID) -> None:
        """Stop a run of this process; one of another is none of our business."""
        self.loop.call_soon_threadsafe(self._cancel, run_id)

    def _cancel(self, run_id: UUID) -> None:
        if (task := self.tasks.get(run_id)) is not None:
            task.cancel()

    def stop(self) -> None:
        """End every run with the reason that the process ends, and wait until that is written."""
        self.is_stopping = True
        for run_id in list(self.tasks):
            self.cancel(run_id)
        self.writer.wait_until_flushed(PATIENCE)


def warm() -> None:
    """Load what the first run needs beside everything else: whoever is about to ask should not wait for it."""
    if PERFORMING not in sys.modules:
        threading.Thread(target=import_module, args=[PERFORMING], name="run-warm-up", daemon=True).start()


_lock = threading.Lock()
_engine: Engine | None = None


def engine() -> Engine:
    """The engine of this process, started with its first run."""
    global _engine
    with _lock:
        if _engine is None:
            _engine = Engine()
        return _engine


def running_engine() -> Engine | None:
    """The engine of this process where it has one."""
    return _engine


@on_shutdown
def stop() -> None:
    """End the runs of this process, then let their readers go, and those of the runs of others."""
    if _engine is not None:
        _engine.stop()
    streams.stop()
