"""Notifications of new events, in this process and through Valkey in the others.

They only reduce the delay. Readers also poll, so a lost notification loses no event.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from secrets import token_hex
from uuid import UUID

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

from agentcms.cache import CACHE_ERRORS

log = logging.getLogger(__name__)

CHANNEL_PREFIX = "agent.stream."
CANCEL_MESSAGE = "stop"  # any other message announces new events
FALLBACK_POLL_INTERVAL = 0.25  # seconds between reads while Valkey is not available
RECONNECT_DELAY = 5.0  # seconds before the next attempt to reach Valkey


def thread_channel(thread_id: int) -> str:
    """Return the name under which readers of a thread are woken."""
    return f"thread-{thread_id}"


class RunNotifier:
    """The readers of this process, grouped by the run whose events they read."""

    def __init__(self, url: str) -> None:
        self.url = url  # of Valkey; blank without one
        self.token = token_hex(8)
        self.lock = threading.Lock()
        # By run: the event of each reader, and whether the reader only waits for the end.
        self.readers: dict[str, dict[threading.Event, bool]] = defaultdict(dict)
        self.listener: threading.Thread | None = None
        self.is_closed = False
        self.is_subscribed = False
        self.retry_at = 0.0  # monotonic time before which nothing is published
        self.publisher: redis.Redis | None = None
        # Set by the engine of this process: cancels one of its runs, and returns whether it executes a run.
        self.cancel_run: Callable[[UUID], None] | None = None
        self.executes: Callable[[UUID], bool] = lambda run_id: False

    @contextmanager
    def subscribe(
        self, run_id: UUID | str, *, ends_only: bool = False, woken: threading.Event | None = None
    ) -> Iterator[threading.Event]:
        """Yield an event that is set whenever the run, or the thread with this channel, has something new.

        With `ends_only`, new events of a run in this process do not set it unless the run has ended. `woken` is the
        event of a reader that already has one.
        """
        woken, name = woken or threading.Event(), str(run_id)
        with self.lock:
            self.readers[name][woken] = ends_only
        self.start_listening()
        try:
            yield woken
        finally:
            with self.lock:
                self.readers[name].pop(woken, None)
                if not self.readers[name]:
                    del self.readers[name]

    def only_end_is_awaited(self, run_id: UUID, *, if_unread: bool = False) -> bool:
        """Return True if all readers of a run in this process wait for its end, as those of `generate` do.

        Return `if_unread` if it has no readers here.
        """
        with self.lock:
            readers = self.readers.get(str(run_id))
            return all(readers.values()) if readers else if_unread

    @property
    def new_events_message(self) -> str:
        """The message with which this process announces new events. A forked process has another one."""
        return f"{self.token}:{os.getpid()}"

    def poll_interval(self, maximum: float) -> float:
        """Return how long a reader may wait for a notification before it reads the database."""
        return maximum if self.is_subscribed else min(maximum, FALLBACK_POLL_INTERVAL)

    def wake(self, name: str, *, has_ended: bool = True) -> None:
        """Wake the readers of a run in this process: all of them if the run may have ended."""
        with self.lock:
            for woken, ends_only in self.readers.get(name, {}).items():
                if has_ended or not ends_only:
                    woken.set()

    def wake_all(self) -> None:
        with self.lock:
            for readers in self.readers.values():
                for woken in readers:
                    woken.set()

    def notify(self, has_ended_by_run: Mapping[UUID, bool] | Mapping[str, bool]) -> None:
        """Wake the readers of these runs, or of the channels of threads, in all processes."""
        for run_id, has_ended in has_ended_by_run.items():
            self.wake(str(run_id), has_ended=has_ended)
        self._publish(map(str, has_ended_by_run), self.new_events_message)

    def request_cancel(self, run_id: UUID) -> None:
        """Ask the process that executes a run to cancel it now. Without Valkey it reads the request from the row."""
        if self.cancel_run is not None:
            self.cancel_run(run_id)
        self._publish([str(run_id)], CANCEL_MESSAGE)

    def _publish(self, names: Iterable[str], message: str) -> None:
        if not self.url or time.monotonic() < self.retry_at:
            return
        try:
            self.publisher = self.publisher or self._connect(timeout=1)
            with self.publisher.pipeline(transaction=False) as pipeline:
                for name in names:
                    pipeline.publish(CHANNEL_PREFIX + name, message)
                pipeline.execute()
        except CACHE_ERRORS as error:
            self.retry_at = time.monotonic() + RECONNECT_DELAY
            log.warning("Valkey is not available. Other processes poll for %.0f s: %s", RECONNECT_DELAY, error)

    def start_listening(self) -> None:
        """Start to receive the notifications of other processes."""
        with self.lock:
            if self.listener is None and self.url:
                self.listener = threading.Thread(target=self._listen, name="run-notifications", daemon=True)
                self.listener.start()

    def _listen(self) -> None:
        while not self.is_closed:
            try:
                self._receive()
            except Exception as error:  # any: if this thread ended, readers would wait for notifications in vain
                self.is_subscribed = False
                self.wake_all()
                is_outage = isinstance(error, CACHE_ERRORS)
                log.warning("No notifications of runs from Valkey: %s", error, exc_info=not is_outage)
                time.sleep(RECONNECT_DELAY)

    def _receive(self) -> None:
        with self._connect().pubsub(ignore_subscribe_messages=False) as subscription:  # type: ignore[no-untyped-call]
            subscription.psubscribe(CHANNEL_PREFIX + "*")
            for message in subscription.listen():
                if message["type"] == "psubscribe":
                    self.wake_all()  # notifications before the subscription were lost
                    self.is_subscribed = True  # last: whoever waits for it is not woken by the line above
                elif message["type"] == "pmessage":
                    self._handle(*(message[part].decode("utf-8", "replace") for part in ("channel", "data")))

    def _handle(self, channel: str, message: str) -> None:
        name = channel.removeprefix(CHANNEL_PREFIX)
        if message == self.new_events_message:
            return  # the readers of this process were woken before the message was sent
        if message != CANCEL_MESSAGE:
            self.wake(name)
        elif self.cancel_run is not None:
            with suppress(ValueError):  # other programs may publish on this channel
                self.cancel_run(UUID(name))

    def _connect(self, timeout: float | None = None) -> redis.Redis:
        # No retries: the writer must not wait for Valkey.
        no_retry = Retry(NoBackoff(), 0)
        return redis.Redis.from_url(self.url, socket_connect_timeout=1, socket_timeout=timeout, retry=no_retry)

    def close(self) -> None:
        """Stop listening after the current connection ends."""
        self.is_closed = True


notifier = RunNotifier(settings.REDIS_URL)
