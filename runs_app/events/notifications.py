"""Who waits for the events of a run is woken when there are more: in this process, and through Valkey in the others.

Nothing depends on it but the delay: a wake-up that is lost is made up for by looking again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from uuid import UUID

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

log = logging.getLogger(__name__)

PREFIX = "agent.stream."
STOP = "stop"  # what is said of a run that is to end; of one that has more to read, nothing
LOOK_AGAIN = 0.25  # seconds, where nobody tells this process what others write
PAUSE = 5.0  # seconds before a Valkey that went away is asked again


class RunNotifier:
    """The readers of this process and what they wait for."""

    def __init__(self, address: str) -> None:
        self.address = address  # of Valkey, or "" where there is none
        self.lock = threading.Lock()
        self.waiting: dict[str, set[threading.Event]] = defaultdict(set)
        self.listener: threading.Thread | None = None
        self.is_closed = False
        self.is_told = False  # whether Valkey tells us at this moment
        self.silent_until = 0.0
        self.sender: redis.Redis | None = None
        self.stop: Callable[[UUID], None] | None = None  # who carries the runs of this process

    @contextmanager
    def subscribe(self, run_id: UUID) -> Iterator[threading.Event]:
        """An event that is set whenever the run has more to read."""
        woken, name = threading.Event(), str(run_id)
        with self.lock:
            self.waiting[name].add(woken)
        self.listen()
        try:
            yield woken
        finally:
            with self.lock:
                self.waiting[name].discard(woken)
                if not self.waiting[name]:
                    del self.waiting[name]

    def patience(self, longest: float) -> float:
        """How long to wait for a wake-up before looking without one."""
        return longest if self.is_told else min(longest, LOOK_AGAIN)

    def wake(self, name: str) -> None:
        """Wake who waits in this process."""
        with self.lock:
            for woken in self.waiting.get(name, ()):
                woken.set()

    def wake_all(self) -> None:
        with self.lock:
            for readers in self.waiting.values():
                for woken in readers:
                    woken.set()

    def notify(self, run_ids: Iterable[UUID]) -> None:
        """Wake who waits for these runs, wherever."""
        names = [str(run_id) for run_id in run_ids]
        for name in names:
            self.wake(name)
        self._publish(names, "")

    def request_cancel(self, run_id: UUID) -> None:
        """Have a run stopped at once by the process that carries it; the row says so too, to who hears nothing."""
        if self.stop is not None:
            self.stop(run_id)
        self._publish([str(run_id)], STOP)

    def _publish(self, names: Iterable[str], said: str) -> None:
        if not self.address or time.monotonic() < self.silent_until:
            return
        try:
            self.sender = self.sender or self._connect(patience=1)
            with self.sender.pipeline(transaction=False) as pipeline:
                for name in names:
                    pipeline.publish(PREFIX + name, said)
                pipeline.execute()
        except redis.RedisError as error:
            self.silent_until = time.monotonic() + PAUSE
            log.warning("Readers in other processes look by themselves for %.0f s: %s", PAUSE, error)

    def listen(self) -> None:
        """Hear what other processes tell, from now on."""
        with self.lock:
            if self.listener is None and self.address:
                self.listener = threading.Thread(target=self._listen_on, name="run-wakeups", daemon=True)
                self.listener.start()

    def _listen_on(self) -> None:
        while not self.is_closed:
            try:
                self._hear()
            except redis.RedisError as error:
                self.is_told = False
                self.wake_all()
                log.warning("Valkey tells nothing of runs at the moment: %s", error)
                time.sleep(PAUSE)

    def _hear(self) -> None:
        with self._connect().pubsub(ignore_subscribe_messages=False) as subscription:
            subscription.psubscribe(PREFIX + "*")
            for message in subscription.listen():
                if message["type"] == "psubscribe":
                    self.is_told = True
                    self.wake_all()  # something may have been missed while nobody listened
                elif message["type"] == "pmessage":
                    self._heard(*(message[part].decode("utf-8", "replace") for part in ("channel", "data")))

    def _heard(self, channel: str, said: str) -> None:
        name = channel.removeprefix(PREFIX)
        if said != STOP:
            self.wake(name)
        elif self.stop is not None:
            with suppress(ValueError):  # whoever else speaks on this channel
                self.stop(UUID(name))

    def _connect(self, patience: float | None = None) -> redis.Redis:
        # Without tries of its own: events are not to wait for a Valkey that is away.
        never = Retry(NoBackoff(), 0)
        return redis.Redis.from_url(self.address, socket_connect_timeout=1, socket_timeout=patience, retry=never)

    def close(self) -> None:
        """Hear nothing more, once what is being heard now has ended."""
        self.is_closed = True


wakeups = RunNotifier(settings.REDIS_URL)
