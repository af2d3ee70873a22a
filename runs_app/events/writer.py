"""The writer of events: one thread per process writes the events and steps of all its runs together.

The first piece of each text, the results of tools and the end of a run are written at once. Other chunks are gathered
into at most ten commits a second. An answer of the model is written before the next step begins.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models.functions import Coalesce
from django.utils import timezone

from runs_app.engine import leases, run_ends
from runs_app.events.notifications import notifier
from runs_app.events.pending_runs import (
    PendingRun,
    WriteSnapshot,
    remove_written_steps,
    take_snapshot,
    uncancellable_future,
)
from runs_app.events.saving import save_snapshots
from runs_app.events.stream_chunks import DELTA_TYPES, StreamChunk, append_delta
from runs_app.frequent_queries import cancel_requested_ids
from runs_app.models import AgentRun, RunStep
from runs_app.models.run import DURABLE_LEASE_DURATION

log = logging.getLogger(__name__)

COMMIT_INTERVAL = 0.1  # seconds
URGENT_DELAY = 0.005  # seconds in which the first pieces and ends of other runs join a commit
RETRY_DELAY = 0.1  # seconds before events are written again after an error
CANCEL_POLL_INTERVAL = 0.4  # seconds between reads of cancel requests
STEP_DELAY = 0.002  # seconds in which the finished steps of other runs join a commit
CONNECTION_IDLE = 1.0  # seconds without runs before the connection is closed: a new one to SQLite costs 1.5 ms of CPU
LEASE_RENEW_INTERVAL = 2.5  # seconds; see LEASE_DURATION
DURABLE_RENEW_INTERVAL = 1.5  # seconds; see DURABLE_LEASE_DURATION
UNSTORABLE_MESSAGE = "The events of this run could not be stored."


class EventWriter:
    """The writer of one process. It calls `cancel_run` for runs to cancel and `lose_run` for runs that it has lost."""

    def __init__(self, holder: str, cancel_run: Callable[[UUID], None], lose_run: Callable[[UUID], None]) -> None:
        self.holder = holder
        self.cancel_run = cancel_run
        self.lose_run = lose_run
        self.runs: dict[UUID, PendingRun] = {}
        self.changed = threading.Condition()
        self.thread: threading.Thread | None = None
        self.due_at = math.inf  # when the thread must write the pending chunks and ends
        self.cancel_polled_at = self.renewed_at = 0.0
        self.is_unsure = False  # whether the last transaction was committed

    # --- Calls from runs

    def register(self, run_id: UUID, *, ends_only: bool = False) -> None:
        """Accept chunks of a run and renew its lease from now on."""
        self._register(run_id, PendingRun(ends_only=ends_only))

    def register_claimed(self, run: AgentRun, claimed_at: float, *, ends_only: bool = False) -> None:
        """Accept chunks and steps of a run that this process has claimed at this monotonic time."""
        leased_until = claimed_at + DURABLE_LEASE_DURATION.total_seconds() if run.is_durable else math.inf
        pending = PendingRun(run.last_event_number, run.fence, leased_until, run.attempts, run.parent_id, ends_only)
        self._register(run.pk, pending)

    def _register(self, run_id: UUID, run: PendingRun) -> None:
        with self.changed:
            self.runs.setdefault(run_id, run)
            if self.thread is None:
                self.thread = threading.Thread(target=self._loop, name="run-writer", daemon=True)
                self.thread.start()
            self.changed.notify_all()

    def is_registered(self, run_id: UUID) -> bool:
        """Return whether this process executes a run. The end of such a run is not yet written."""
        return run_id in self.runs

    def registered_ids(self) -> set[UUID]:
        """Return the runs whose ends are not yet written by this process."""
        with self.changed:
            return {*self.runs}

    def is_open(self, run_id: UUID) -> bool:
        """Return whether this process executes a run that has not ended."""
        run = self.runs.get(run_id)
        return run is not None and run.end is None

    def add(self, run_id: UUID, data: StreamChunk) -> None:
        """Write a chunk with the next commit."""
        with self.changed:
            run = self.runs.get(run_id)
            if run is None or run.end is not None:
                return
            if len(run.chunks) > run.in_flight and append_delta(run.chunks[-1][0], data):
                return
            now = timezone.now()
            run.chunks.append((data, now))
            text_id = data["payload"]["id"] if data["type"] in DELTA_TYPES else run.text_id
            # A run may be faster than the request that started it, which waits for it only now.
            is_read = not notifier.only_end_is_awaited(run_id, if_unread=run.ends_only)
            is_urgent = is_read and text_id != run.text_id
            self._write_within(URGENT_DELAY if is_urgent else COMMIT_INTERVAL)
            run.text_id = text_id
            if text_id is not None and run.first_text_at is None:
                run.first_text_at = now

    def write_step(self, run_id: UUID, step: RunStep, *, at_once: bool) -> Future[bool]:
        """Write the state of a step of a durable run, in one transaction with the chunks so far.

        The result is False if another process owns the run.
        """
        future = uncancellable_future()
        with self.changed:
            run = self.runs.get(run_id)
            if run is None or run.end is not None:
                future.set_result(False)
                return future
            run.steps[step.key] = step
            run.step_futures.append(future)
            self._write_within(STEP_DELAY if at_once else COMMIT_INTERVAL)
        return future

    @contextmanager
    def one_commit(self) -> Iterator[None]:
        """Write what the block adds in one transaction. The block must not wait for anything.

        Otherwise the thread may write an event alone. If the process is then killed, the next one repeats the step
        that the event reports, and with it the event.
        """
        with self.changed:
            yield

    def hurry(self) -> None:
        """Write at once what was added to be written later."""
        with self.changed:
            self._write_within(STEP_DELAY)

    def has_lease(self, run_id: UUID) -> bool:
        """Return whether the lease of a run is valid by the clock of this process."""
        run = self.runs.get(run_id)
        return run is not None and time.monotonic() < run.leased_until

    def hand_over(self, run_id: UUID, worked_ms: int, **columns: Any) -> Future[bool]:
        """Queue a durable run for another process, after its chunks and steps. Set columns of its row."""
        return self.close(run_id, status=AgentRun.Status.QUEUED, worked_ms=worked_ms, **columns)

    def close(self, run_id: UUID, **values: Any) -> Future[bool]:
        """Write the end of a run after its chunks. The result is False if another process owns the run."""
        with self.changed:
            run = self.runs.get(run_id)
            if run is None:
                not_written: Future[bool] = Future()
                not_written.set_result(False)
                return not_written
            if run.first_text_at is not None:
                values["first_text_at"] = Coalesce("first_text_at", run.first_text_at)
            run.end = values
            self._write_within(URGENT_DELAY)
            return run.written

    def _write_within(self, seconds: float) -> None:
        """Let the thread write at the latest after so many seconds. The caller holds the lock."""
        due_at = time.monotonic() + seconds
        if due_at < self.due_at:
            self.due_at = due_at
            self.changed.notify_all()

    def wait_until_flushed(self, seconds: float) -> bool:
        """Wait until the ends of all runs are written. Return False after the timeout."""
        with self.changed:
            return self.changed.wait_for(lambda: not self.runs, timeout=seconds)

    # --- The thread

    def _loop(self) -> None:
        while True:
            self._wait_until_due()
            try:
                self.run_once()
                continue
            except (OperationalError, InterfaceError) as error:
                log.warning("The database is not available. Events of runs are retried: %s", error)
                self.is_unsure = True
                connection.close()
            except Exception:
                log.exception("Events of runs could not be written.")
            self._discard_lost(self._expired_ids())
            time.sleep(RETRY_DELAY)
            self.due_at = 0.0

    def _expired_ids(self) -> list[UUID]:
        """Return the durable runs whose leases could not be renewed in time. Another process may have claimed them."""
        now = time.monotonic()
        with self.changed:
            return [run_id for run_id, run in self.runs.items() if run.leased_until < now]

    def _wait_until_due(self) -> None:
        """Wait until chunks must be written or cancel requests must be read."""
        with self.changed:
            if not self.changed.wait_for(lambda: self.runs, CONNECTION_IDLE):
                connection.close()  # the thread may sleep for long
                self.changed.wait_for(lambda: self.runs)
            while (seconds := min(self.due_at, self.cancel_polled_at + CANCEL_POLL_INTERVAL) - time.monotonic()) > 0:
                self.changed.wait(seconds)

    def run_once(self) -> None:
        """Write pending events, then renew leases and read cancel requests if they are due."""
        self.write(self._take_snapshots())
        self.is_unsure = False
        now = time.monotonic()
        fences = self._registered_fences()  # before the query: a run that starts meanwhile is not lost
        if now - self.renewed_at > (DURABLE_RENEW_INTERVAL if any(fences.values()) else LEASE_RENEW_INTERVAL):
            self.renewed_at = now
            self._renew(fences, now)
        if now - self.cancel_polled_at >= CANCEL_POLL_INTERVAL:
            self.cancel_polled_at = now
            for run_id in cancel_requested_ids(holder=self.holder):
                self.cancel_run(run_id)

    def _renew(self, fences: dict[UUID, int], now: float) -> None:
        owned = leases.renew(self.holder, fences)
        with self.changed:
            for run_id, run in self.runs.items():
                if run.leased_until < math.inf and owned.get(run_id) == run.fence:
                    run.leased_until = now + DURABLE_LEASE_DURATION.total_seconds()
        self._discard_lost(run_id for run_id, fence in fences.items() if owned.get(run_id) != fence)

    def _registered_fences(self) -> dict[UUID, int]:
        with self.changed:
            return {run_id: run.fence for run_id, run in self.runs.items()}

    def _take_snapshots(self) -> dict[UUID, WriteSnapshot]:
        snapshots = {}
        with self.changed:
            self.due_at = math.inf
            for run_id, run in self.runs.items():
                run.in_flight = len(run.chunks)
                if run.chunks or run.steps or run.end is not None:
                    snapshots[run_id] = take_snapshot(run)
        return snapshots

    def write(self, snapshots: dict[UUID, WriteSnapshot]) -> None:
        """Write all runs in one transaction. If a value cannot be stored, write each run in its own."""
        if not snapshots:
            return
        try:
            with transaction.atomic():
                owned = save_snapshots(snapshots, self.holder, may_be_saved=self.is_unsure)
        except (OperationalError, InterfaceError):
            raise
        except Exception:
            log.exception("The events of %d runs could not be stored.", len(snapshots))
            for run_id, snapshot in snapshots.items():
                if len(snapshots) > 1:
                    self.write({run_id: snapshot})
                else:
                    self._fail_unstorable(run_id, snapshot)
            return
        self._mark_written(snapshots, owned)
        notifier.notify({run_id: snapshot.end is not None for run_id, snapshot in snapshots.items()})

    def _mark_written(self, snapshots: dict[UUID, WriteSnapshot], owned: set[UUID]) -> None:
        with self.changed:
            for run_id in owned:
                run, snapshot = self.runs[run_id], snapshots[run_id]
                run.number += len(snapshot.chunks)
                del run.chunks[: len(snapshot.chunks)]
                run.in_flight = 0
                remove_written_steps(run, snapshot)
                if snapshot.end is not None:
                    del self.runs[run_id]
                    run.written.set_result(True)
                    self.changed.notify_all()
        self._discard_lost(run_id for run_id in snapshots if run_id not in owned)

    def _discard_lost(self, run_ids: Iterable[UUID]) -> None:
        """Forget and cancel runs that this process no longer owns."""
        for run_id in list(run_ids):
            with self.changed:
                run = self.runs.pop(run_id, None)
                self.changed.notify_all()
            if run is not None:
                run.written.set_result(False)
                for future in run.step_futures:
                    future.set_result(False)
                self.lose_run(run_id)
                notifier.wake(str(run_id))

    def _fail_unstorable(self, run_id: UUID, snapshot: WriteSnapshot) -> None:
        with transaction.atomic():
            own = AgentRun.objects.leased().filter(pk=run_id, holder=self.holder, fence=snapshot.fence)
            run = own.select_for_update(of=("self",)).first()
            if run is not None:
                run_ends.record_end(run, status=AgentRun.Status.FAILED, error=UNSTORABLE_MESSAGE)
        self._discard_lost([run_id])
