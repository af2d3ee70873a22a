"""Event streams of runs. A stream reads the event rows, so any process can serve it any number of times.

A run is over for its readers when it is finished, and while it waits for people: that can take days.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from access_app.caller import Caller
from agentcms.db.connections import return_connection
from agentcms.db.outages import read_through_outage
from agentcms.errors import ApiError, Unavailable
from agentcms.plural import pluralize
from runs_app.approvals.lookup import waits_for_people
from runs_app.engine import run_ends
from runs_app.events.notifications import notifier
from runs_app.events.redaction import redact_chunk
from runs_app.events.stream_access import StreamAccess, is_run_visible
from runs_app.events.stream_chunks import FINAL_TYPES, SUSPENDED_TYPE, StreamChunk, build_chunk, encode_chunk
from runs_app.frequent_queries import MAX_EVENTS_PER_READ, events_after, run_with_id
from runs_app.models import AgentRun

Batch = list[tuple[int, StreamChunk]]
ChunkConverter = Callable[[StreamChunk], Iterable[StreamChunk]]

HEARTBEAT = 15.0  # seconds; proxies close idle connections, and a write detects a reader that has left
EVENT_POLL_INTERVAL = 5.0  # seconds between reads without a notification; the executing process may have died
STREAM_RETRY_AFTER = 2  # seconds
FULL_MESSAGE = "The server has too many open streams. Try again shortly."

PIECE_BYTES = 64 * 1024  # of blocks are sent together

KEEP_ALIVE = b": \n\n"
DONE_BLOCK = b"data: [DONE]\n\n"

stopping = threading.Event()  # set when this process stops; readers then reconnect to another


def follow_events(run_id: UUID, after: int = 0) -> Iterator[Batch]:
    """Yield the events after a number until the run is over. An empty batch is a heartbeat."""
    sent_at = time.monotonic()
    with notifier.subscribe(run_id) as woken:
        while True:
            woken.clear()  # before the read: what is written after it sets the event again, and the wait below ends
            was_stopping = stopping.is_set()  # read before the events: those written before it must be yielded
            batch, is_last = read_through_outage(stopping, read_batch, run_id, after)
            return_connection()
            if batch:
                yield batch
                after, sent_at = batch[-1][0], time.monotonic()
            if len(batch) == MAX_EVENTS_PER_READ and not is_last:
                continue
            if is_last or was_stopping:
                return
            woken.wait(notifier.poll_interval(EVENT_POLL_INTERVAL))
            if time.monotonic() - sent_at >= HEARTBEAT:
                yield []
                sent_at = time.monotonic()


def read_batch(run_id: UUID, after: int) -> tuple[Batch, bool]:
    """Return the events after a number, and whether they are the last ones for now, because the run is over."""
    batch = read_events_after(run_id, after)
    last_type = batch[-1][1]["type"] if batch else SUSPENDED_TYPE
    if last_type != SUSPENDED_TYPE or not check_over(run_id):
        return batch, last_type in FINAL_TYPES
    # Further events may have been written between the two queries.
    following = read_events_after(run_id, batch[-1][0] if batch else after)
    if not following and not AgentRun.objects.filter(pk=run_id).exists():
        following = [(batch[-1][0] + 1 if batch else after + 1, deleted_chunk(run_id))]
    is_last = not following or following[-1][1]["type"] in FINAL_TYPES
    return [*batch, *following], is_last


def read_events_after(run_id: UUID, number: int) -> Batch:
    return events_after(run_id=run_id, number=number)


def deleted_chunk(run_id: UUID) -> StreamChunk:
    """Return the last chunk of a run that was deleted with its agent or its resource. No row stores it."""
    return build_chunk("error", error={"name": "Error", "message": f"Run {run_id} was deleted."})


def check_over(run_id: UUID) -> bool:
    """Return whether a run is deleted or over. End the run if its lease has expired."""
    # The row is not over before this process has written the end, which wakes its readers.
    if notifier.executes(run_id):
        return False
    run = AgentRun.objects.filter(pk=run_id).only("status", "lease_until", "is_durable", "root_id").first()
    return run is None or is_over(run)


def is_over(run: AgentRun) -> bool:
    """Return whether a run was finished, or waited for people, when it was read.

    End it if its lease has expired, unless it is durable.
    """
    is_leased = run.lease_until is None or run.lease_until >= timezone.now()
    if not (is_leased or run.is_durable or run.is_finished):
        run_ends.end_lost_run(run.pk)
    return run.is_finished or waits_for_people(run)


def wait_until_over(run_id: UUID) -> AgentRun:
    """Wait until a run is finished or waits for people, and return it. Requests acquire a `StreamSlot` first.

    Raise AgentRun.DoesNotExist if the run was deleted meanwhile.
    """
    with notifier.subscribe(run_id, ends_only=True) as woken:
        while True:
            woken.clear()
            was_stopping = stopping.is_set()
            # While this process executes the run, its writer wakes the reader at the end, and no query is needed.
            if was_stopping or not notifier.executes(run_id):
                run, has_ended = read_through_outage(stopping, read_run, run_id)
                if has_ended or was_stopping:
                    return run
            return_connection()
            woken.wait(notifier.poll_interval(EVENT_POLL_INTERVAL))


def read_run(run_id: UUID) -> tuple[AgentRun, bool]:
    """Return a run, and whether it is over. Raise AgentRun.DoesNotExist."""
    run = run_with_id.first(run_id=run_id)
    if run is None:
        raise AgentRun.DoesNotExist
    return run, is_over(run)


class TooManyStreams(ApiError):
    """Error 429: the user has reached the limit of streams in this process."""

    def __init__(self, maximum: int) -> None:
        limit = pluralize(maximum, "open stream")
        message = f"You have reached the limit of {limit} of unfinished runs. Close one, or wait until a run ends."
        super().__init__(429, message, "too_many_streams", headers={"Retry-After": str(STREAM_RETRY_AFTER)})


class StreamSlots:
    """The open streams of this process by user. Each blocks a server thread, so their number is limited."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count_by_user: Counter[int | None] = Counter()

    def acquire(self, user_id: int | None) -> None:
        """Raise TooManyStreams at the limit of the user, Unavailable at the limit of the process."""
        with self.lock:
            if self.count_by_user[user_id] >= settings.RUN_STREAMS_PER_USER:
                raise TooManyStreams(settings.RUN_STREAMS_PER_USER)
            if self.count_by_user.total() >= settings.RUN_STREAMS:
                # The code tells clients that nothing has begun, so that they can repeat any request.
                raise Unavailable(FULL_MESSAGE, STREAM_RETRY_AFTER, "too_many_streams")
            self.count_by_user[user_id] += 1

    def release(self, user_id: int | None) -> None:
        with self.lock:
            self.count_by_user[user_id] -= 1
            self.count_by_user += Counter()  # removes users without streams


stream_slots = StreamSlots()


class StreamSlot:
    """One stream of a user in this process. Raise the errors of `StreamSlots.acquire`."""

    def __init__(self, user: Caller) -> None:
        self.user = user
        self.user_id = user.pk
        stream_slots.acquire(self.user_id)
        self.is_released = False

    def __enter__(self) -> StreamSlot:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def release(self) -> None:
        if not self.is_released:
            self.is_released = True
            stream_slots.release(self.user_id)


class ServerSentEvents:
    """The base of streams of server-sent events. A stream occupies a slot until it is closed, even if never read."""

    def __init__(self, slot: StreamSlot) -> None:
        self.slot = slot
        self.blocks = self._release_at_end()

    def generate_blocks(self) -> Iterator[bytes]:
        """Yield the events, and from time to time KEEP_ALIVE."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[bytes]:
        return self.blocks

    def _release_at_end(self) -> Generator[bytes, None, None]:
        try:
            yield from self.generate_blocks()
        finally:
            self.slot.release()

    def close(self) -> None:
        with suppress(ValueError):  # another thread may be executing the generator
            self.blocks.close()
        self.slot.release()


class EventStream(ServerSentEvents):
    """The events of a run.

    The stream ends without `[DONE]` when its reader may no longer read the run.

    A block is `data: {chunk}`, preceded by `id: {number}` if `numbered`. The published client only accepts blocks
    that start with `data: ` and contain nothing else. `redacted` streams contain only the answer. `first_chunks` come
    first, without numbers. `convert` returns the chunks that are sent for a chunk. `batches` replace the events of the
    run.
    """

    def __init__(
        self,
        run_id: UUID,
        after: int,
        slot: StreamSlot,
        *,
        numbered: bool,
        redacted: bool = False,
        first_chunks: Sequence[StreamChunk] = (),
        convert: ChunkConverter | None = None,
        batches: Iterator[Batch] | None = None,
    ) -> None:
        super().__init__(slot)
        self.run_id = run_id
        self.numbered = numbered
        self.redacted = redacted
        self.first_chunks = first_chunks
        self.convert = convert
        self.batches = follow_events(run_id, after) if batches is None else batches
        self.access = StreamAccess(slot.user, lambda: is_run_visible(slot.user, run_id, details=not redacted))

    def generate_blocks(self) -> Iterator[bytes]:
        # The response headers are sent with the first bytes.
        yield b"".join(self._block(None, chunk) for chunk in self.first_chunks) or KEEP_ALIVE
        for batch in self.batches:
            if read_through_outage(stopping, self.access.has_ended):
                return
            yield from self._pieces(batch)
        if not stopping.is_set():
            yield DONE_BLOCK

    def _pieces(self, batch: Batch) -> Iterator[bytes]:
        """Yield the blocks of a batch. Small ones are joined, and large ones are sent one after the other."""
        piece, is_sent = b"", False
        for event in batch:
            piece += self._block(*event)
            if len(piece) >= PIECE_BYTES:
                yield piece
                piece, is_sent = b"", True
        if piece or not is_sent:
            yield piece or KEEP_ALIVE

    def _block(self, number: int | None, data: StreamChunk) -> bytes:
        if self.redacted:
            answer = redact_chunk(data)
            if answer is None:
                return b""
            data = answer
        event_id = b"id: %d\n" % number if self.numbered and number is not None else b""
        if self.convert is None:
            return b"%sdata: %s\n\n" % (event_id, encode_chunk(self.run_id, data))
        return b"".join(b"data: %s\n\n" % encode_chunk(self.run_id, chunk) for chunk in self.convert(data))


def stop_streams() -> None:
    """Release all readers of this process."""
    stopping.set()
    notifier.wake_all()
