"""A stream is a view of a run's events: whoever reads them, in whatever process, and as often as they like."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import suppress
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import close_old_connections
from django.utils import timezone

from agentcms.errors import ApiError, Unavailable
from runs_app.engine import leases
from runs_app.events.chunks import LAST, Chunk, chunk, encode_chunk
from runs_app.events.notifications import wakeups
from runs_app.models import AgentRun, RunEvent

Batch = list[tuple[int, Chunk]]

HEARTBEAT = 15.0  # seconds: proxies close what is silent for longer, and a reader that left is noticed
LOOK = 5.0  # seconds between two looks without a wake-up: the process that runs it may have died
MOST_AT_ONCE = 500  # events of one read
RETRY_AFTER = 2  # seconds

ALIVE = b": \n\n"
DONE = b"data: [DONE]\n\n"

stopping = threading.Event()  # this process ends: readers are to come back to another


def follow(run_id: UUID, after: int = 0) -> Iterator[Batch]:
    """The events of a run after a number as they come, until it is over; an empty batch while nothing happens."""
    spoke_at = time.monotonic()
    with wakeups.subscribe(run_id) as woken:
        while True:
            woken.clear()
            was_stopping = stopping.is_set()  # what was written before is read all the same
            is_over = is_finished(run_id)  # asked before the events, so that none comes after the answer
            while batch := events_after(run_id, after):
                close_old_connections()  # a reader may be slow to take them
                yield batch
                after, spoke_at = batch[-1][0], time.monotonic()
                if batch[-1][1]["type"] in LAST:
                    return
            if is_over or was_stopping:
                if is_over and not AgentRun.objects.filter(pk=run_id).exists():
                    yield [(after + 1, deleted(run_id))]
                return
            close_old_connections()  # while nothing happens, others may have it
            woken.wait(wakeups.patience(LOOK))
            if time.monotonic() - spoke_at >= HEARTBEAT:
                yield []
                spoke_at = time.monotonic()


def events_after(run_id: UUID, number: int) -> Batch:
    found = RunEvent.objects.filter(run=run_id, number__gt=number).order_by("number")
    return list(found.values_list("number", "data")[:MOST_AT_ONCE])


def deleted(run_id: UUID) -> Chunk:
    """The last chunk of a run whose agent was deleted with all its runs; it stands in no row."""
    return chunk("error", error={"name": "Error", "message": f"Run {run_id} was deleted with its agent."})


def is_finished(run_id: UUID) -> bool:
    """Whether nothing more comes; a run whose process has died is given up here, by who notices."""
    run = AgentRun.objects.filter(pk=run_id).only("status", "lease_until").first()
    if run is None or run.is_over:
        return True
    if run.lease_until is not None and run.lease_until < timezone.now():
        leases.give_up(run_id)
    return False


def wait_for(run_id: UUID) -> AgentRun:
    """The run when it is over; a request takes its `room` first.

    Raises AgentRun.DoesNotExist where it vanished meanwhile.
    """
    for _ in follow(run_id):
        pass
    return AgentRun.objects.get(pk=run_id)


class TooManyStreams(ApiError):
    """429: the user has a share of the places of this process, so that others find one."""

    def __init__(self, most: int) -> None:
        sentence = f"You read {most} runs here that are not over. Wait for one, or close a stream."
        super().__init__(429, sentence, "too_many_streams", headers={"Retry-After": str(RETRY_AFTER)})


class StreamSlots:
    """Who reads a run in this process. Each reader has a thread of the server; WEB_THREADS are left for the rest."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.taken: Counter[Any] = Counter()  # by user

    def acquire(self, user: Any) -> None:
        """Raises TooManyStreams where the user has a full share, and Unavailable where nobody finds a place."""
        with self.lock:
            if self.taken[user] >= settings.RUN_STREAMS_PER_USER:
                raise TooManyStreams(settings.RUN_STREAMS_PER_USER)
            if self.taken.total() >= settings.RUN_STREAMS:
                sentence = "So many streams are open here that no other may begin. Try again shortly."
                raise Unavailable(sentence, RETRY_AFTER)
            self.taken[user] += 1

    def release(self, user: Any) -> None:
        with self.lock:
            self.taken[user] -= 1
            self.taken += Counter()  # forgets who has none


places = StreamSlots()


class stream_slot:
    """A place of a user among those who may wait in this process. Raises what `Places.take` does."""

    def __init__(self, user: Any) -> None:
        self.user = user.pk
        places.acquire(self.user)
        self.left = False

    def __enter__(self) -> stream_slot:
        return self

    def __exit__(self, *error: object) -> None:
        self.leave()

    def leave(self) -> None:
        if not self.left:
            self.left = True
            places.release(self.user)


class EventStream:
    """The events of a run as server-sent events. It has a place until it is closed, also when nobody read it.

    A block is `data: {chunk}`, and begins with `id: {number}` where the reader understands it: the published client
    takes a block for a chunk only if it begins with `data: ` and holds nothing else.
    """

    def __init__(self, run_id: UUID, after: int, place: stream_slot, *, numbered: bool) -> None:
        self.place = place
        self.run_id = run_id
        self.numbered = numbered
        self.batches = follow(run_id, after)
        self.blocks = self._blocks()

    def __iter__(self) -> Iterator[bytes]:
        return self.blocks

    def _blocks(self) -> Generator[bytes, None, None]:
        try:
            yield ALIVE  # the headers go out with the first bytes, and a reader may be waiting for them
            for batch in self.batches:
                yield b"".join(self._block(*event) for event in batch) or ALIVE
            if not stopping.is_set():
                yield DONE
        finally:
            self.place.leave()

    def _block(self, number: int, data: Chunk) -> bytes:
        name = b"id: %d\n" % number if self.numbered else b""
        return b"%sdata: %s\n\n" % (name, encode_chunk(self.run_id, data))

    def close(self) -> None:
        with suppress(ValueError):  # another thread may be in the middle of it
            self.blocks.close()
        self.place.leave()


def stop() -> None:
    """Let every reader of this process go."""
    stopping.set()
    wakeups.wake_all()
