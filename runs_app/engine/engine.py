"""The event loop of a process that executes its runs. The row of a run holds all that it needs."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Callable, Coroutine
from importlib import import_module
from typing import Any, TypeVar
from uuid import UUID

from agentcms.process.shutdown import on_shutdown
from agentcms.process.stall_watchdog import watch_loop
from runs_app.engine.leases import new_holder_name
from runs_app.engine.threads import run_blocking
from runs_app.events import streams
from runs_app.events.notifications import notifier
from runs_app.events.writer import EventWriter
from runs_app.models import AgentRun

log = logging.getLogger(__name__)

EXECUTE_MODULE = "runs_app.engine.execute"
SHUTDOWN_TIMEOUT = 2.0  # seconds to write the ends of all runs when the process stops

TaskResult = TypeVar("TaskResult")


class Engine:
    """An event loop in a thread, with one task per run."""

    def __init__(self) -> None:
        self.holder = new_holder_name()
        self.writer = EventWriter(self.holder, self.cancel)
        self.tasks: dict[UUID, asyncio.Task[Any]] = {}
        self.execute_run: Callable[[Engine, AgentRun], Coroutine[Any, Any, Any]] | None = None
        self.is_stopping = False
        notifier.cancel_run, notifier.executes = self.cancel, self.writer.is_registered
        notifier.start_listening()
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, name="run-loop", daemon=True).start()
        watch_loop(self.loop)

    def submit(self, run: AgentRun) -> None:
        """Execute a run in this process, which holds its lease."""
        self.writer.register(run.pk)  # renews the lease from now on, however long the import takes
        asyncio.run_coroutine_threadsafe(self._start(run), self.loop)

    async def _start(self, run: AgentRun) -> None:
        if self.execute_run is None:
            # The module imports pydantic-ai, which takes a second. Importing it here delays no request.
            self.execute_run = (await run_blocking(import_module, EXECUTE_MODULE)).execute_run
        if self.is_stopping:
            return  # the lease expires and a reader ends the run
        self.run_task(run.pk, self.execute_run(self, run))

    def run_task(self, run_id: UUID, execution: Coroutine[Any, Any, TaskResult]) -> asyncio.Task[TaskResult]:
        """Create the task of a run. Call it on the event loop only."""
        task = self.loop.create_task(execution, name=f"run {run_id}")
        self.tasks[run_id] = task
        task.add_done_callback(lambda done: self._finished(run_id, done))
        return task

    def _finished(self, run_id: UUID, task: asyncio.Task[Any]) -> None:
        self.tasks.pop(run_id, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("Run %s ended with an unexpected error.", run_id, exc_info=error)

    def cancel(self, run_id: UUID) -> None:
        """Cancel a run of this process. Runs of other processes are ignored."""
        self.loop.call_soon_threadsafe(self._cancel, run_id)

    def _cancel(self, run_id: UUID) -> None:
        if (task := self.tasks.get(run_id)) is not None:
            task.cancel()

    def stop(self) -> None:
        """End every run because the process stops, and wait until the ends are written."""
        self.is_stopping = True
        for run_id in list(self.tasks):
            self.cancel(run_id)
        self.writer.wait_until_flushed(SHUTDOWN_TIMEOUT)


def preload() -> None:
    """Import the modules of the first run in a thread, so that the first user does not wait for them."""
    if EXECUTE_MODULE not in sys.modules:
        threading.Thread(target=import_module, args=[EXECUTE_MODULE], name="run-preload", daemon=True).start()


_lock = threading.Lock()
_engine: Engine | None = None


def get_engine() -> Engine:
    """Return the engine of this process. The first call starts it."""
    global _engine
    with _lock:
        if _engine is None:
            _engine = Engine()
        return _engine


def find_engine() -> Engine | None:
    """Return the engine of this process, or None if no run has started here."""
    return _engine


@on_shutdown
def shut_down_runs() -> None:
    """End the runs of this process, then release all readers, including those of runs in other processes."""
    if _engine is not None:
        _engine.stop()
    streams.stop_streams()
