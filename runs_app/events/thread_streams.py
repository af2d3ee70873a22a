"""The event stream of a thread: its active run, all later ones, and the signals that come meanwhile."""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from uuid import UUID

from django.db import close_old_connections

from memory_app.history.signals import NO_RUN, stored_signals, wire_signal
from memory_app.history.turns import is_spoken
from memory_app.models import Message, Thread
from memory_app.realms import MemoryCaller, still_has_access
from runs_app.events import streams
from runs_app.events.notifications import notifier, thread_channel
from runs_app.events.redaction import redact_chunk
from runs_app.events.stream_chunks import StreamChunk, encode_chunk
from runs_app.models import AgentRun

THREAD_HEARTBEAT = 25.0  # seconds


@dataclass
class FollowedRun:
    """A run whose events the stream sends now."""

    id: UUID
    is_redacted: bool  # the reader only sees the answer
    after: int = 0

    def blocks(self) -> tuple[list[bytes], bool]:
        """Return the new events as blocks, and whether they are the last ones."""
        batch, is_last = streams.read_batch(self.id, self.after)
        if batch:
            self.after = batch[-1][0]
        return [block for _, chunk in batch if (block := self.block(chunk))], is_last

    def block(self, chunk: StreamChunk) -> bytes:
        visible = redact_chunk(chunk) if self.is_redacted else chunk
        return b"data: %s\n\n" % encode_chunk(self.id, visible) if visible is not None else b""


@dataclass
class ThreadReader:
    """Position of a reader in a thread."""

    thread: Thread
    caller: MemoryCaller
    last_number: int = 0  # of the signals that were sent
    done: set[UUID] = field(default_factory=set)  # runs that are over, or were when the stream began
    current: FollowedRun | None = None

    def begin(self) -> None:
        """Begin after the signals so far, with the runs that are not over."""
        last = stored_signals(self.thread.pk).order_by("-number").values_list("number", flat=True).first()
        self.last_number = last or 0
        over = AgentRun.objects.filter(thread=self.thread, parent=None, finished_at__isnull=False)
        self.done = {*over.values_list("pk", flat=True)}

    def may_read(self) -> bool:
        """Return False if the thread was deleted, or the reader takes no longer part in it."""
        return still_has_access(self.caller) and (
            Thread.objects.for_caller(self.caller).filter(pk=self.thread.pk).exists()
        )

    def read(self) -> list[bytes]:
        """Return what is new, as blocks."""
        blocks = self.read_signals()
        while (run := self.current or self.find_next()) is not None:
            self.current = run
            events, is_last = run.blocks()
            blocks += events
            if not is_last:
                break
            self.done.add(run.id)
            self.current = None
        return blocks

    def read_signals(self) -> list[bytes]:
        rows = [*stored_signals(self.thread.pk).filter(number__gt=self.last_number)]
        if rows:
            self.last_number = rows[-1].number
        return [signal_block(row) for row in rows]

    def find_next(self) -> FollowedRun | None:
        """Return the oldest run that was not followed yet, or None."""
        runs = AgentRun.objects.filter(thread=self.thread, parent=None).exclude(pk__in=self.done)
        run = runs.order_by("created_at", "pk").only("pk").first()
        if run is None:
            return None
        visible = AgentRun.objects.for_user(self.caller.user).with_roles(self.caller.user).filter(pk=run.pk).first()
        is_redacted = visible is None or not visible.details_visible_to(self.caller.user)
        return FollowedRun(run.pk, is_redacted)


def signal_block(message: Message) -> bytes:
    """Return a signal as a block of an event stream."""
    kind = "data-user-message" if is_spoken(message) else "data-signal"
    seen_by = message.seen_by if message.seen_by != NO_RUN else None
    run_id = str(seen_by or (message.delivery or {}).get("runId") or "")
    body = {"type": kind, "runId": run_id, "from": "USER", "data": wire_signal(message)}
    return b"data: %s\n\n" % json.dumps(body, separators=(",", ":")).encode()


class ThreadStream:
    """The stream as server-sent events. It occupies a slot until it is closed, even if never read."""

    def __init__(self, thread: Thread, caller: MemoryCaller, slot: streams.StreamSlot) -> None:
        self.slot = slot
        self.reader = ThreadReader(thread, caller)
        try:
            self.reader.begin()
        except BaseException:  # nobody gets a stream whose end would release the slot
            slot.release()
            raise
        self.generator = self._blocks()

    def __iter__(self) -> Iterator[bytes]:
        return self.generator

    def _blocks(self) -> Generator[bytes, None, None]:
        try:
            yield streams.KEEP_ALIVE  # the response headers are sent with the first bytes
            yield from self._follow()
        finally:
            self.slot.release()

    def _follow(self) -> Iterator[bytes]:
        sent_at = time.monotonic()
        with ExitStack() as stack:
            woken = stack.enter_context(notifier.subscribe(thread_channel(self.reader.thread.pk)))
            subscribed: UUID | None = None
            while not streams.stopping.is_set():
                woken.clear()
                blocks = self.reader.read()
                if not blocks and time.monotonic() - sent_at >= THREAD_HEARTBEAT:
                    blocks = [streams.KEEP_ALIVE]
                if blocks and not self.reader.may_read():
                    return
                current = self.reader.current.id if self.reader.current else None
                is_new_run = current is not None and current != subscribed
                if current is not None and is_new_run:
                    stack.enter_context(notifier.subscribe(current, woken=woken))
                    subscribed = current
                close_old_connections()  # return the connection while waiting; the reader may be slow
                if blocks:
                    yield b"".join(blocks)
                    sent_at = time.monotonic()
                if is_new_run:
                    continue  # events may have come before the subscription
                woken.wait(notifier.poll_interval(streams.EVENT_POLL_INTERVAL))

    def close(self) -> None:
        with suppress(ValueError):  # another thread may be executing the generator
            self.generator.close()
        self.slot.release()
