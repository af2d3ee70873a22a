"""The event stream of a thread: its active run, all later ones, and the signals that come meanwhile."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Set
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils import timezone

from agentcms.db.connections import return_connection
from agentcms.db.outages import read_through_outage
from memory_app.history.thread_signals import NO_RUN, stored_signals, wire_signal
from memory_app.history.turn_markup import is_spoken
from memory_app.models import Message, Thread
from memory_app.realms import MemoryCaller, still_has_access
from runs_app.events import streams
from runs_app.events.notifications import notifier, thread_channel
from runs_app.events.redaction import redact_chunk
from runs_app.events.stream_chunks import FINAL_TYPES, encode_chunk
from runs_app.frequent_queries import MAX_EVENTS_PER_READ
from runs_app.models import AgentRun

THREAD_HEARTBEAT = 25.0  # seconds
CLOCK_TOLERANCE = timedelta(minutes=1)  # between the clocks of two machines


@dataclass
class FollowedRun:
    """A run whose events the stream sends now, or when people have decided its calls."""

    id: UUID
    after: int = 0  # the number of the last event that was sent


@dataclass
class ThreadReader:
    """Position of a reader in a thread."""

    thread: Thread
    caller: MemoryCaller
    last_number: int = 0  # of the signals that were sent
    began_at: datetime = field(default_factory=timezone.now)
    done: set[UUID] = field(default_factory=set)  # runs that were finished shortly before the stream began, or since
    suspended: dict[UUID, FollowedRun] = field(default_factory=dict)  # runs that waited for people when last read
    current: FollowedRun | None = None

    def begin(self) -> None:
        """Begin after the signals so far, with the runs that are not over."""
        last = stored_signals(self.thread.pk).order_by("-number").values_list("number", flat=True).first()
        self.last_number = last or 0
        self.done = {*self.runs().filter(finished_at__isnull=False).values_list("pk", flat=True)}

    def runs(self) -> QuerySet[AgentRun]:
        """Return the runs of the thread that were not finished long before the stream began."""
        is_recent = Q(finished_at=None) | Q(finished_at__gte=self.began_at - CLOCK_TOLERANCE)
        return AgentRun.objects.filter(is_recent, thread=self.thread, parent=None)

    def may_read(self) -> bool:
        """Return False if the thread was deleted, or the reader takes no longer part in it."""
        return still_has_access(self.caller) and (
            Thread.objects.for_caller(self.caller).filter(pk=self.thread.pk).exists()
        )

    def read(self) -> tuple[list[bytes], bool]:
        """Return what is new, as blocks, and whether there may be more already."""
        blocks = self.read_signals()
        run = self.current = self.current or read_through_outage(streams.stopping, self.find_next)
        if run is None:
            return blocks, False
        batch, is_last = read_through_outage(streams.stopping, streams.read_batch, run.id, run.after)
        if batch:
            run.after = batch[-1][0]
            blocks += read_through_outage(streams.stopping, self.run_blocks, run, batch)
        if is_last:
            self.leave(run, is_finished=bool(batch) and batch[-1][1]["type"] in FINAL_TYPES)
        return blocks, bool(batch) and (is_last or len(batch) >= MAX_EVENTS_PER_READ)

    def leave(self, run: FollowedRun, *, is_finished: bool) -> None:
        """Read other runs from now on. Return to this one if it only waits for people."""
        self.current = None
        self.suspended.pop(run.id, None)
        if is_finished:
            self.done.add(run.id)
        else:
            self.suspended[run.id] = run

    def unfinished_ids(self) -> set[UUID]:
        """Return the runs that wake the reader."""
        return {*self.suspended, *([self.current.id] if self.current else [])}

    def read_signals(self) -> list[bytes]:
        rows = read_through_outage(
            streams.stopping, list, stored_signals(self.thread.pk).filter(number__gt=self.last_number)
        )
        if rows:
            self.last_number = rows[-1].number
        return [signal_block(row) for row in rows]

    def find_next(self) -> FollowedRun | None:
        """Return the oldest run with events that were not sent yet, or None."""
        rows = self.runs().exclude(pk__in=self.done).order_by("created_at", "pk")
        for run_id, suspended_at, finished_at, number in rows.values_list(
            "pk", "suspended_at", "finished_at", "last_event_number"
        ):
            run = self.suspended.get(run_id)
            if run is None:
                return FollowedRun(run_id)
            if number > run.after or (suspended_at is None and finished_at is None):
                return run
        return None

    def run_blocks(self, run: FollowedRun, batch: streams.Batch) -> list[bytes]:
        """Return events as blocks: only those of the answer, unless the reader may see more."""
        user = self.caller.user
        row = AgentRun.objects.for_user(user).with_roles(user).without_large_columns().filter(pk=run.id).first()
        chunks = [chunk for _, chunk in batch]
        if row is None or not row.details_visible_to(user):
            chunks = [answer for chunk in chunks if (answer := redact_chunk(chunk)) is not None]
        return [b"data: %s\n\n" % encode_chunk(run.id, chunk) for chunk in chunks]


def signal_block(message: Message) -> bytes:
    """Return a signal as a block of an event stream."""
    kind = "data-user-message" if is_spoken(message) else "data-signal"
    seen_by = message.seen_by if message.seen_by != NO_RUN else None
    run_id = str(seen_by or (message.delivery or {}).get("runId") or "")
    body = {"type": kind, "runId": run_id, "from": "USER", "data": wire_signal(message)}
    return b"data: %s\n\n" % json.dumps(body, separators=(",", ":")).encode()


class RunSubscriptions:
    """The runs of which new events wake the reader of a thread."""

    def __init__(self, woken: threading.Event) -> None:
        self.woken = woken
        self.subscriptions: dict[UUID, ExitStack] = {}

    def follow(self, run_ids: Set[UUID]) -> bool:
        """Follow these runs and no others. Return whether one of them is new: it may have events already."""
        for run_id in self.subscriptions.keys() - run_ids:
            self.subscriptions.pop(run_id).close()
        added = run_ids - self.subscriptions.keys()
        for run_id in added:
            self.subscriptions[run_id] = ExitStack()
            self.subscriptions[run_id].enter_context(notifier.subscribe(run_id, woken=self.woken))
        return bool(added)


class ThreadStream(streams.ServerSentEvents):
    """The events of the runs and the signals of a thread."""

    def __init__(self, thread: Thread, caller: MemoryCaller, slot: streams.StreamSlot) -> None:
        super().__init__(slot)
        self.reader = ThreadReader(thread, caller)
        try:
            self.reader.begin()
        except BaseException:  # nobody gets a stream whose end would release the slot
            slot.release()
            raise

    def generate_blocks(self) -> Iterator[bytes]:
        yield streams.KEEP_ALIVE  # the response headers are sent with the first bytes
        with notifier.subscribe(thread_channel(self.reader.thread.pk)) as woken:
            subscriptions = RunSubscriptions(woken)
            try:
                yield from self._follow(woken, subscriptions)
            finally:
                subscriptions.follow(set())

    def _follow(self, woken: threading.Event, subscriptions: RunSubscriptions) -> Iterator[bytes]:
        sent_at = time.monotonic()
        while not streams.stopping.is_set():
            woken.clear()
            blocks, has_more = self.reader.read()
            if not blocks and time.monotonic() - sent_at >= THREAD_HEARTBEAT:
                blocks = [streams.KEEP_ALIVE]
            if blocks and not read_through_outage(streams.stopping, self.reader.may_read):
                return
            has_more = subscriptions.follow(self.reader.unfinished_ids()) or has_more
            return_connection()
            if blocks:
                yield b"".join(blocks)
                sent_at = time.monotonic()
            if not has_more:
                woken.wait(notifier.poll_interval(streams.EVENT_POLL_INTERVAL))
