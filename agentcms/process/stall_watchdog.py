"""Watchdogs that end a process which no longer reacts.

Code that holds Python's interpreter lock, such as a slow regular expression, stops all threads of a process. The
watchdog is the timer of `faulthandler`, which does not need the lock: it writes the tracebacks of all threads to
standard error and ends the process. The server, or the supervisor of the worker, then starts a new one.
"""

from __future__ import annotations

import asyncio
import faulthandler
import threading
from concurrent.futures import Executor

from agentcms.process import heartbeats

REWIND_SECONDS = 2.0

_watched_loops: list[asyncio.AbstractEventLoop] = []


def watch_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Watch a further event loop of this process."""
    _watched_loops.append(loop)


class StallWatchdog:
    """A timer that ends the process unless the event loops and the probe thread keep rewinding it."""

    def __init__(self, timeout: float, probes: Executor) -> None:
        """Set up the watchdog. `timeout` is in seconds; 0 switches the watchdog off."""
        self.timeout = timeout
        self.probes = probes
        self.task: asyncio.Task[None] | None = None  # the loop has only a weak reference

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Watch this event loop, the loops of `watch_loop` and the probe thread."""
        if self.timeout:
            self.rewind()
            self.task = loop.create_task(self.watch(loop))

    async def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Rewind the timer again and again, while every watched loop and the probe thread react."""
        while True:
            await asyncio.sleep(REWIND_SECONDS)
            # Without a timeout: while a loop does not react, nothing rewinds the timer, and it ends the process.
            for watched in _watched_loops:
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asyncio.sleep(0), watched))
            await loop.run_in_executor(self.probes, self.rewind)

    def rewind(self) -> None:
        """Give the process another `timeout`."""
        faulthandler.dump_traceback_later(self.timeout, exit=True)
        heartbeats.beat()

    def stop(self) -> None:
        """Stop watching, because the process ends."""
        if self.task is not None:
            self.task.cancel()
        faulthandler.cancel_dump_traceback_later()


class WorkerWatchdog:
    """A timer that ends a worker unless its event loops and a thread keep rewinding it."""

    def __init__(self, timeout: float) -> None:
        """Set up the watchdog. `timeout` is in seconds; 0 switches the watchdog off."""
        self.timeout = timeout
        self.is_stopped = threading.Event()
        self.lock = threading.Lock()  # or the thread would rewind the timer after the end of the watch

    def start(self) -> None:
        """Watch the loops of `watch_loop`, also those that start later."""
        if self.timeout:
            self.rewind()
            threading.Thread(target=self.watch, name="watchdog", daemon=True).start()

    def watch(self) -> None:
        """Rewind the timer again and again, while every watched loop reacts."""
        while not self.is_stopped.wait(REWIND_SECONDS):
            for loop in [*_watched_loops]:
                asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result()
            self.rewind()

    def rewind(self) -> None:
        """Give the process another `timeout`."""
        with self.lock:
            if not self.is_stopped.is_set():
                faulthandler.dump_traceback_later(self.timeout, exit=True)

    def stop(self) -> None:
        """Stop watching, because the process ends."""
        with self.lock:
            self.is_stopped.set()
            faulthandler.cancel_dump_traceback_later()
