"""The writer of events: one thread per process writes the events and steps of all its runs together.

The first piece of each text, the results of tools and the end of a run are written at once. Other chunks are gathered
into at most ten commits a second. An answer of the model is written before the next step begins.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable
from uuid import UUID

from django.db import connection, transaction

from agentcms.db.outages import OUTAGE_ERRORS
from runs_app.engine import leases, run_ends
from runs_app.engine.runners import get_runner
from runs_app.events.notifications import notifier
from runs_app.events.pending_runs import PendingRun, WriteSnapshot, remove_written_steps
from runs_app.events.pending_writes import PendingWrites
from runs_app.events.saving import save_snapshots
from runs_app.frequent_queries import cancel_requested_ids
from runs_app.models import AgentRun
from runs_app.models.run import DURABLE_LEASE_DURATION

log = logging.getLogger(__name__)

RETRY_DELAY = 0.1  # seconds before events are written again after an error
CANCEL_POLL_INTERVAL = 0.4  # seconds between reads of cancel requests
CONNECTION_IDLE = 1.0  # seconds without runs before the connection is closed: a new one to SQLite costs 1.5 ms of CPU
LEASE_RENEW_INTERVAL = 2.5  # seconds; see LEASE_DURATION
DURABLE_RENEW_INTERVAL = 1.5  # seconds; see DURABLE_LEASE_DURATION
UNSTORABLE_MESSAGE = "The events of this run could not be stored."


class EventWriter(PendingWrites):
    """The writer of one process. It calls `cancel_run` for runs to cancel and `cancel_lost_run` for lost ones."""

    def __init__(
        self, holder: str, cancel_run: Callable[[UUID], None], cancel_lost_run: Callable[[UUID], None]
    ) -> None:
        super().__init__()
        self.holder = holder
        self.cancel_run = cancel_run
        self.cancel_lost_run = cancel_lost_run
        self.thread: threading.Thread | None = None
        self.cancel_polled_at = self.renewed_at = 0.0
        self.is_unsure = False  # whether the last transaction was committed
        self.abandoned: dict[UUID, PendingRun] = {}  # whose leases ended while the database was away

    def _register(self, run_id: UUID, run: PendingRun) -> None:
        with self.changed:
            super()._register(run_id, run)
            if self.thread is None:
                self.thread = threading.Thread(target=self._loop, name="run-writer", daemon=True)
                self.thread.start()

    def _loop(self) -> None:
        while True:
            self._wait_until_due()
            try:
                self.run_once()
                continue
            except OUTAGE_ERRORS as error:
                log.warning("The database is not available. Events of runs are retried: %s", error)
                self.is_unsure = True
                self.note_outage()
                self._abandon_expired()
            except Exception:
                log.exception("Events of runs could not be written.")
            connection.close()  # an error at the end of a transaction leaves it open, and nothing later is committed
            self._discard_lost(self._expired_ids())
            time.sleep(RETRY_DELAY)
            self.due_at = 0.0  # reset with the snapshots, and no further chunk may come that would set it

    def _expired_ids(self) -> list[UUID]:
        """Return the durable runs whose leases could not be renewed in time. Another process may have claimed them."""
        now = time.monotonic()
        with self.changed:
            return [run_id for run_id, run in self.runs.items() if run.leased_until < now]

    def _abandon_expired(self) -> None:
        """Discard the runs whose leases end because of an outage, and remember them until the database is back."""
        expired = self._expired_ids()
        with self.changed:
            self.abandoned |= {run_id: run for run_id in expired if (run := self.runs.get(run_id)) is not None}
        self._discard_lost(expired)

    def _queue_abandoned(self) -> None:
        """Queue the runs that an outage has ended here, before others take this process for a dead one."""
        for run_id, run in list(self.abandoned.items()):
            if run_ends.requeue_lost_run(run_id, run.fence, is_dead=False) and run.parent_id is None:
                get_runner().dispatch(run_id)
            del self.abandoned[run_id]

    def _wait_until_due(self) -> None:
        """Wait until chunks must be written or cancel requests must be read."""
        with self.changed:
            if not self.changed.wait_for(lambda: self.runs or self.abandoned, CONNECTION_IDLE):
                connection.close()  # the thread may sleep for long
                self.changed.wait_for(lambda: self.runs)
            while (seconds := min(self.due_at, self.cancel_polled_at + CANCEL_POLL_INTERVAL) - time.monotonic()) > 0:
                self.changed.wait(seconds)

    def run_once(self) -> None:
        """Write pending events, then renew leases and read cancel requests if they are due."""
        self.write(self._take_snapshots())
        self.is_unsure = False
        self._queue_abandoned()
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

    def write(self, snapshots: dict[UUID, WriteSnapshot]) -> None:
        """Write all runs in one transaction. If a value cannot be stored, write each run in its own."""
        if not snapshots:
            return
        try:
            with transaction.atomic():
                owned = save_snapshots(snapshots, self.holder, may_be_saved=self.is_unsure)
        except OUTAGE_ERRORS:
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
                self.cancel_lost_run(run_id)
                notifier.wake(str(run_id))

    def _fail_unstorable(self, run_id: UUID, snapshot: WriteSnapshot) -> None:
        """Fail a run. If its end cannot be stored either, give it up: another process ends it with its lease."""
        try:
            with transaction.atomic():
                own = AgentRun.objects.leased().filter(pk=run_id, holder=self.holder, fence=snapshot.fence)
                if (run := run_ends.lock_run(run_id, own)) is not None:
                    run_ends.record_end(run, status=AgentRun.Status.FAILED, error=UNSTORABLE_MESSAGE)
        except OUTAGE_ERRORS:
            raise
        except Exception:
            log.exception("The end of run %s could not be stored.", run_id)
        self._discard_lost([run_id])
