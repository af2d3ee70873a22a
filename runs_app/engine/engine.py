"""The event loop of a process that executes its runs. The row of a run holds all that it needs."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextvars import Context
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from django.conf import settings
from django.db import Error as DatabaseError

from agentcms.process.event_loops import start_loop
from agentcms.process.stall_watchdog import watch_loop
from runs_app.engine import leases, missing_ends
from runs_app.engine.thread_pools import run_blocking, run_db
from runs_app.events.notifications import notifier
from runs_app.events.writer import EventWriter
from runs_app.models import AgentRun

if TYPE_CHECKING:
    from runs_app.engine.journaling.journal import Journal

log = logging.getLogger(__name__)

EXECUTE_MODULE = "runs_app.engine.execution.execute"
UNSTARTED_MESSAGE = "The server could not start this run. The server log has the details."
SHUTDOWN_TIMEOUT = 2.0  # seconds to write the ends of all runs when the process stops
TOOL_SHUTDOWN_TIMEOUT = 5.0  # seconds in which the tools of durable runs may finish when the process stops

TaskResult = TypeVar("TaskResult")

WEB_RUNNERS = ("process", "inngest")  # values of RUN_ENGINE with which web processes execute the runs


class Engine:
    """An event loop in a thread, with one task per run."""

    def __init__(self) -> None:
        self.holder = leases.new_holder_name()
        self.writer = EventWriter(self.holder, self.cancel, self.cancel_lost)
        self.run_tasks: dict[UUID, asyncio.Task[object]] = {}
        self.execute_run: Callable[[Engine, AgentRun], Coroutine[Any, Any, Any]] | None = None
        self.durable_ids: set[UUID] = set()  # of the tasks
        self.journals: dict[UUID, Journal] = {}  # of the durable runs that have begun
        self.claiming: set[UUID] = set()
        self.offered_again: set[UUID] = set()  # while they had a task here
        # Tasks that execute background tasks. Other workers can continue their jobs.
        self.background_work: set[asyncio.Task[None]] = set()
        self.is_worker = False
        self.is_stopping = False
        notifier.cancel_run, notifier.executes = self.cancel, self.writer.is_registered
        notifier.start_listening()
        self.loop = start_loop("run-loop")
        watch_loop(self.loop)

    def submit(self, run: AgentRun, *, ends_only: bool = False) -> None:
        """Execute a run that is not durable in this process, which holds its lease."""
        # Renews the lease from now on, however long the import takes.
        self.writer.register(run.pk, ends_only=ends_only)
        asyncio.run_coroutine_threadsafe(self._start(run), self.loop)

    def submit_claimed(self, run: AgentRun, claimed_at: float, *, ends_only: bool) -> None:
        """Execute a durable run that this process has created and claimed at this monotonic time."""
        self.writer.register_claimed(run, claimed_at, ends_only=ends_only)
        asyncio.run_coroutine_threadsafe(self._start(run, claimed_at), self.loop)

    async def _start(self, run: AgentRun, claimed_at: float = 0.0) -> None:
        try:
            execute_run = await self._load_execute_run()
        except Exception:  # for example, the code on the disk was upgraded and this process was not restarted
            log.exception("Run %s could not be started.", run.pk)
            missing_ends.fail_run(self.writer, run.pk, UNSTARTED_MESSAGE)
            return
        if run.is_durable and self.is_stopping:
            self.writer.hand_over(run.pk, 0)
        elif run.is_durable:
            self.run_claimed(run, claimed_at, execute_run(self, run))
        elif not self.is_stopping:  # otherwise the lease expires and a reader ends the run
            self.run_task(run.pk, execute_run(self, run))

    async def _load_execute_run(self) -> Callable[[Engine, AgentRun], Coroutine[Any, Any, Any]]:
        if self.execute_run is None:
            # The module imports pydantic-ai, which takes a second. Importing it here delays no request.
            self.execute_run = (await run_blocking(import_module, EXECUTE_MODULE)).execute_run
        return self.execute_run

    def start_background_work(self, work: Coroutine[Any, Any, None]) -> None:
        """Execute a background task on the event loop. It is cancelled when this process stops."""

        async def start() -> None:
            task = self.loop.create_task(work, context=Context())
            self.background_work.add(task)
            task.add_done_callback(self.background_work.discard)

        asyncio.run_coroutine_threadsafe(start(), self.loop)

    def offer(self, run_id: UUID) -> None:
        """Claim and execute a durable run if a slot is free. Otherwise it stays queued."""
        self._call(self._take(run_id))

    def perform(self, run_id: UUID) -> Future[None]:
        """Claim and execute a durable run as in `offer`. The future ends when this process no longer executes it."""
        return asyncio.run_coroutine_threadsafe(self._perform(run_id), self.loop)

    async def _perform(self, run_id: UUID) -> None:
        await self._take(run_id)
        if (task := self.run_tasks.get(run_id)) is not None:
            await asyncio.wait([task])

    def continue_run(self, run_id: UUID) -> None:
        """Claim and execute the next segment of a run that is not durable. Only this process knows of it."""
        self._call(self._continue(run_id))

    async def _continue(self, run_id: UUID) -> None:
        if (task := self.run_tasks.get(run_id)) is not None:  # somebody decided before it has ended
            await asyncio.wait([task])
        await self._claim_and_run(leases.claim, run_id)

    @property
    def takes_queued(self) -> bool:
        """Return whether a free slot is given to a queued run."""
        return self.is_worker or settings.RUN_ENGINE in WEB_RUNNERS

    def take_queued(self) -> None:
        """Claim and execute queued runs, the oldest first, while slots are free."""
        if self.takes_queued:
            self._call(self._take_oldest())

    def _call(self, claiming: Coroutine[Any, Any, None]) -> None:
        """Claim runs on the event loop. What fails stays queued, and the reaper dispatches it again."""

        async def call() -> None:
            try:
                await claiming
            except DatabaseError as error:
                log.warning("A queued run could not be claimed: %s", error)
            except Exception:
                log.exception("A queued run could not be claimed.")

        asyncio.run_coroutine_threadsafe(call(), self.loop)

    @property
    def has_free_slot(self) -> bool:
        return not self.is_stopping and len(self.run_tasks) + len(self.claiming) < settings.RUNS_PER_WORKER

    @property
    def occupied_ids(self) -> set[UUID]:
        """The runs of which a task or a write of this process has not ended.

        Other processes may see earlier that such a run is queued again. Its next task would be confused with this one.
        """
        return {*self.run_tasks, *self.writer.registered_ids()}

    async def _take(self, run_id: UUID) -> None:
        if run_id in self.run_tasks:  # its next segment was queued before the task of this one has ended
            self.offered_again.add(run_id)
        elif (written := self.writer.find_end(run_id)) is not None:
            await asyncio.wait([asyncio.wrap_future(written)])  # others may see the hand-over before this process does
        if not self.has_free_slot or run_id in self.claiming or run_id in self.occupied_ids:
            return
        self.claiming.add(run_id)
        try:
            await self._claim_and_run(leases.claim, run_id)
        finally:
            self.claiming.discard(run_id)

    async def _take_oldest(self) -> None:
        while self.has_free_slot:
            claim = partial(leases.claim_oldest, excluded=self.occupied_ids)
            if not await self._claim_and_run(claim):
                return

    async def _claim_and_run(self, claim: Callable[..., AgentRun | None], *arguments: UUID) -> bool:
        """Execute the run that `claim` returns. Return False if it returns none."""
        execute_run = await self._load_execute_run()  # before the claim, whose lease is short
        claimed_at = time.monotonic()
        run = await run_db(claim, *arguments, self.holder)
        if run is not None:
            self.run_claimed(run, claimed_at, execute_run(self, run))
        return run is not None

    def run_claimed(
        self, run: AgentRun, claimed_at: float, execution: Coroutine[Any, Any, TaskResult]
    ) -> asyncio.Task[TaskResult]:
        """Create the task of a durable run that this process claimed at a monotonic time. Call it on the loop only."""
        self.writer.register_claimed(run, claimed_at)
        if run.is_durable:
            self.durable_ids.add(run.pk)
        # A new context: a tool that starts a run must not pass its own journal on.
        return self.run_task(run.pk, execution, Context())

    def run_task(
        self, run_id: UUID, execution: Coroutine[Any, Any, TaskResult], context: Context | None = None
    ) -> asyncio.Task[TaskResult]:
        """Create the task of a run. Call it on the event loop only."""
        task = self.loop.create_task(execution, name=f"run {run_id}", context=context)
        self.run_tasks[run_id] = task
        task.add_done_callback(lambda done: self._finished(run_id, done))
        return task

    def _finished(self, run_id: UUID, task: asyncio.Task[object]) -> None:
        was_full = not self.has_free_slot
        missing_ends.write_missing_end(
            self.writer, run_id, task, is_durable=run_id in self.durable_ids, is_stopping=self.is_stopping
        )
        self.run_tasks.pop(run_id, None)
        self.journals.pop(run_id, None)
        self.durable_ids.discard(run_id)
        if run_id in self.offered_again:
            self.offered_again.discard(run_id)
            self.offer(run_id)
        if was_full:
            self.take_queued()

    def cancel(self, run_id: UUID) -> None:
        """Cancel a run of this process. Runs of other processes are ignored."""
        self.loop.call_soon_threadsafe(self._cancel, run_id)

    def _cancel(self, run_id: UUID) -> None:
        if (task := self.run_tasks.get(run_id)) is not None:
            task.cancel()

    def cancel_lost(self, run_id: UUID) -> None:
        """Cancel a run that no longer belongs to this process."""
        if (journal := self.journals.get(run_id)) is not None:
            journal.is_lost = True
        self.cancel(run_id)

    def is_interrupted(self, run_id: UUID) -> bool:
        """Return whether another process continues a durable run of this process."""
        journal = self.journals.get(run_id)
        return self.is_stopping or (journal is not None and (journal.is_stopping or journal.is_lost))

    def stop(self) -> list[UUID]:
        """End every run because the process stops, and wait until the ends are written.

        Durable runs are queued for another process; return their IDs. A tool that works on one may finish.
        """
        self.is_stopping = True
        durable_ids = list(self.durable_ids)
        self.loop.call_soon_threadsafe(self._cancel_idle)
        deadline = time.monotonic() + TOOL_SHUTDOWN_TIMEOUT
        while (self._works_on_tools() or self.background_work) and time.monotonic() < deadline:
            time.sleep(0.05)
        for run_id in list(self.run_tasks):
            self.cancel(run_id)
        self.writer.wait_until_flushed(SHUTDOWN_TIMEOUT)
        return durable_ids

    def _works_on_tools(self) -> bool:
        return any(journal.active_tools for journal in list(self.journals.values()))

    def _cancel_idle(self) -> None:
        """Cancel the runs of which no tool works. The others stop before their next step."""
        for work in list(self.background_work):
            work.cancel()
        for run_id, task in list(self.run_tasks.items()):
            journal = self.journals.get(run_id)
            if journal is not None:
                journal.is_stopping = True
            if journal is None or not journal.active_tools:
                task.cancel()


def preload() -> None:
    """Import the modules of the first run. Call it before the process starts threads.

    The modules of pydantic-ai import each other. Two threads that import different ones at the same time get a module
    without its names.
    """
    import_module(EXECUTE_MODULE)


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
