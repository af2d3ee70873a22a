"""One thread per process writes the events of all its runs: at most ten commits a second, however many they are."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import InterfaceError, OperationalError, connection, transaction
from django.utils import timezone

from runs_app.engine import leases
from runs_app.events.chunks import GROWING, Chunk, append_delta, event_type
from runs_app.events.notifications import wakeups
from runs_app.models import AgentRun, RunEvent

log = logging.getLogger(__name__)

BETWEEN_COMMITS = 0.1  # seconds
LOOK = 0.4  # seconds between two looks for runs that somebody wants stopped
RENEW = 2.5  # seconds between two renewals of the leases; see LEASE
UNSTORABLE = "What came of this could not be stored."


@dataclass
class PendingRun:
    """A run that this process carries: what it said and is not written yet."""

    number: int = 0  # of its last event that was written
    waiting: list[tuple[Chunk, datetime]] = field(default_factory=list)
    taken: int = 0  # how many of those the thread is writing: they change no more
    end: dict[str, Any] | None = None  # the columns of its end
    written: Future[bool] = field(default_factory=Future)
    first_text_at: datetime | None = None


@dataclass(frozen=True)
class WriteSnapshot:
    """What of a run goes into one transaction."""

    number: int
    chunks: list[tuple[Chunk, datetime]]
    end: dict[str, Any] | None


class EventWriter:
    """Everything that the runs of this process say goes through here; `stop` is told of runs to be stopped."""

    def __init__(self, holder: str, stop: Any) -> None:
        self.holder = holder
        self.stop = stop
        self.held: dict[UUID, PendingRun] = {}
        self.changed = threading.Condition()
        self.thread: threading.Thread | None = None
        self.looked_at = self.renewed_at = 0.0

    # --- What runs say

    def open(self, run_id: UUID) -> None:
        """Expect what a run says."""
        with self.changed:
            self.held.setdefault(run_id, PendingRun())
            if self.thread is None:
                self.thread = threading.Thread(target=self._write_on, name="run-writer", daemon=True)
                self.thread.start()
            self.changed.notify_all()

    def add(self, run_id: UUID, data: Chunk) -> None:
        """Write a chunk soon."""
        with self.changed:
            held = self.held.get(run_id)
            if held is None or held.end is not None:
                return
            if data["type"] in GROWING and held.first_text_at is None:
                held.first_text_at = timezone.now()
            if not (len(held.waiting) > held.taken and append_delta(held.waiting[-1][0], data)):
                held.waiting.append((data, timezone.now()))
            self.changed.notify_all()

    def close(self, run_id: UUID, **values: Any) -> Future[bool]:
        """Write how a run ended with all it said; the answer is whether it was still ours to write."""
        with self.changed:
            held = self.held.get(run_id)
            if held is None:
                gone: Future[bool] = Future()
                gone.set_result(False)
                return gone
            held.end = {"first_text_at": held.first_text_at, **values}
            self.changed.notify_all()
            return held.written

    def forget(self, run_id: UUID) -> None:
        """Expect nothing more of a run that another process carries."""
        with self.changed:
            self.held.pop(run_id, None)

    def wait_until_flushed(self, seconds: float) -> bool:
        """Wait until every run has written its end; whether they have."""
        with self.changed:
            return self.changed.wait_for(lambda: not self.held, timeout=seconds)

    # --- The thread

    def _write_on(self) -> None:
        while True:
            with self.changed:
                while not self.held:
                    connection.close()  # a thread that may sleep for long keeps no connection
                    self.changed.wait()
                self.changed.wait_for(self._has_something, timeout=LOOK)
            try:
                self.turn()
            except (OperationalError, InterfaceError) as error:
                log.warning("Events of runs wait for the database: %s", error)
                connection.close()
            except Exception:
                log.exception("Events of runs could not be written.")
            time.sleep(BETWEEN_COMMITS)

    def _has_something(self) -> bool:
        return any(held.waiting or held.end is not None for held in self.held.values())

    def turn(self) -> None:
        """Write what waits, then look after the leases and for runs that are to be stopped."""
        self.write(self._take())
        now = time.monotonic()
        if now - self.renewed_at > RENEW:
            self.renewed_at = now
            known = self._open_ids()  # before the database is asked: a run that begins meanwhile is not lost
            ours = leases.renew(self.holder, known)
            self._drop(run_id for run_id in known if run_id not in ours)
        if now - self.looked_at > LOOK:
            self.looked_at = now
            for run_id in leases.asked_to_stop(self.holder):
                self.stop(run_id)

    def _open_ids(self) -> list[UUID]:
        with self.changed:
            return list(self.held)

    def _take(self) -> dict[UUID, WriteSnapshot]:
        taken = {}
        with self.changed:
            for run_id, held in self.held.items():
                held.taken = len(held.waiting)
                if held.waiting or held.end is not None:
                    taken[run_id] = WriteSnapshot(held.number, list(held.waiting), held.end)
        return taken

    def write(self, taken: dict[UUID, WriteSnapshot]) -> None:
        """Write in one transaction; where a value cannot be stored, each run in its own."""
        if not taken:
            return
        try:
            with transaction.atomic():
                kept = self._store(taken)
        except (OperationalError, InterfaceError):
            raise
        except Exception:
            log.exception("The events of %d runs could not be stored.", len(taken))
            if len(taken) > 1:
                for run_id, one in taken.items():
                    self.write({run_id: one})
            else:
                self._refuse(*taken)
            return
        self._written(taken, kept)
        wakeups.notify(taken)

    def _store(self, taken: dict[UUID, WriteSnapshot]) -> set[UUID]:
        """The runs of these that were still ours: the lock on a row fences who lost it."""
        mine = AgentRun.objects.filter(pk__in=taken, holder=self.holder, status__in=AgentRun.HELD)
        kept = set(mine.order_by("pk").select_for_update().values_list("pk", flat=True))
        RunEvent.objects.bulk_create(
            RunEvent(run_id=run_id, number=number, type=event_type(data["type"]), data=data, created_at=at)
            for run_id in kept
            for number, (data, at) in enumerate(taken[run_id].chunks, taken[run_id].number + 1)
        )
        for run_id in kept:
            one = taken[run_id]
            if one.end is not None:
                leases.write_end(run_id, last_event_number=one.number + len(one.chunks), **one.end)
        return kept

    def _written(self, taken: dict[UUID, WriteSnapshot], kept: set[UUID]) -> None:
        with self.changed:
            for run_id in kept:
                held, one = self.held[run_id], taken[run_id]
                held.number += len(one.chunks)
                del held.waiting[: len(one.chunks)]
                held.taken = 0
                if one.end is not None:
                    del self.held[run_id]
                    held.written.set_result(True)
                    self.changed.notify_all()
        self._drop(run_id for run_id in taken if run_id not in kept)

    def _drop(self, run_ids: Any) -> None:
        """Forget runs that are ours no more, and stop them."""
        for run_id in list(run_ids):
            with self.changed:
                held = self.held.pop(run_id, None)
                self.changed.notify_all()
            if held is not None:
                held.written.set_result(False)
                self.stop(run_id)

    def _refuse(self, run_id: UUID) -> None:
        with transaction.atomic():
            run = AgentRun.objects.select_for_update().filter(pk=run_id, holder=self.holder).first()
            if run is not None:
                leases.end(run, status=AgentRun.Status.FAILED, error=UNSTORABLE)
        self._drop([run_id])
