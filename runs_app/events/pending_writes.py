"""The chunks, steps and ends that the runs of a process add, until the thread of the writer has written them."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Unpack
from uuid import UUID

from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce
from django.utils import timezone

from runs_app.events.notifications import notifier
from runs_app.events.pending_runs import PendingRun, RunEnd, WriteSnapshot, take_snapshot, uncancellable_future
from runs_app.events.stream_chunks import DELTA_TYPES, StreamChunk, append_delta
from runs_app.models import AgentRun, RunStep
from runs_app.models.run import DURABLE_LEASE_DURATION

COMMIT_INTERVAL = 0.1  # seconds
URGENT_DELAY = 0.005  # seconds in which the first pieces and ends of other runs join a commit
STEP_DELAY = 0.002  # seconds in which the finished steps of other runs join a commit
OUTAGE_MEMORY = 10.0  # seconds after an outage in which an error of the database is taken for a part of it


class PendingWrites:
    """The pending writes of a process, and when they are due.

    The event loop adds to them, and the thread of the writer takes from them, both under `changed`.
    """

    def __init__(self) -> None:
        self.runs: dict[UUID, PendingRun] = {}
        self.changed = threading.Condition()
        self.due_at = math.inf  # when the thread must write the pending chunks and ends
        self.lost_database_at = -math.inf  # monotonic time at which the thread met an outage last

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

    def find_end(self, run_id: UUID) -> Future[bool] | None:
        """Return the future of the end of a run, or of its hand-over, while it is not yet written."""
        run = self.runs.get(run_id)
        return run.written if run is not None and run.end is not None else None

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

    def write_soon(self) -> None:
        """Write within `STEP_DELAY` what was added to be written later."""
        with self.changed:
            self._write_within(STEP_DELAY)

    def has_lease(self, run_id: UUID) -> bool:
        """Return whether the lease of a run is valid by the clock of this process."""
        run = self.runs.get(run_id)
        return run is not None and time.monotonic() < run.leased_until

    def hand_over(self, run_id: UUID, worked_ms: int, attempts: Combinable | None = None) -> Future[bool]:
        """Queue a durable run for another process, after its chunks and steps.

        Set its attempts if they are given, except for an outage of the database that the thread meets, too: then the
        step of the run is not to blame.
        """
        end: RunEnd = {"status": AgentRun.Status.QUEUED, "worked_ms": worked_ms}
        if attempts is not None and time.monotonic() - self.lost_database_at > OUTAGE_MEMORY:
            end["attempts"] = attempts
        return self.close(run_id, **end)

    def note_outage(self) -> None:
        """Note that the thread cannot reach the database. Count no attempts of the runs that it hands over."""
        with self.changed:
            self.lost_database_at = time.monotonic()
            for run in self.runs.values():
                if run.end is not None:
                    run.end.pop("attempts", None)

    def close(self, run_id: UUID, **values: Unpack[RunEnd]) -> Future[bool]:
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
        """Let the thread write no later than after this many seconds. The caller holds the lock."""
        due_at = time.monotonic() + seconds
        if due_at < self.due_at:
            self.due_at = due_at
            self.changed.notify_all()

    def wait_until_flushed(self, seconds: float) -> bool:
        """Wait until the ends of all runs are written. Return False after the timeout."""
        with self.changed:
            return self.changed.wait_for(lambda: not self.runs, timeout=seconds)

    def _take_snapshots(self) -> dict[UUID, WriteSnapshot]:
        snapshots = {}
        with self.changed:
            self.due_at = math.inf
            for run_id, run in self.runs.items():
                run.in_flight = len(run.chunks)
                if run.chunks or run.steps or run.end is not None:
                    snapshots[run_id] = take_snapshot(run)
        return snapshots
