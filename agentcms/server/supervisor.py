"""A loop that prints the output of child processes, restarts them and stops them in order."""

import contextlib
import os
import selectors
import signal
import time
from dataclasses import dataclass
from typing import IO

from agentcms.server.processes import Child, OrphanGuard, adopt_orphans

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SIGNAL_REPEAT_WINDOW = 0.5  # seconds in which a second signal counts as the same request
# Seconds after which a start counts as successful. A child that was killed then is replaced at once; one that fails at
# its start fails earlier.
STABLE_AFTER = 10.0
MAX_RESTART_DELAY = 30.0  # seconds before a failing child is started again
LOG_COLOURS = {"web": 36, "worker": 35, "valkey": 34, "prepare": 32, "agentcms": 1}


class StopRequested(Exception):
    """A stop signal was received; the message is its name."""


class Log:
    """A log of lines with the name of their process, coloured on a terminal."""

    def __init__(self, out: IO[str]) -> None:
        self.out = out
        self.colour = out.isatty() and "NO_COLOR" not in os.environ

    def line(self, name: str, text: str) -> None:
        """Print a line of the named process."""
        label = f"{name:8} |"
        if self.colour:
            label = f"\033[{LOG_COLOURS.get(name, 37)}m{label}\033[0m"
        # A closed terminal or a finished `| head` must not interrupt the shutdown.
        with contextlib.suppress(OSError, ValueError):
            self.out.write(f"{label} {text}\n")
            self.out.flush()


@dataclass(eq=False)
class SupervisedChild:
    """A child that is restarted when it ends."""

    child: Child
    failures: int = 0
    start_at: float | None = None


class Supervisor:
    """The owner of the child processes, the signals and the log, in one thread."""

    def __init__(self, orphan_guard: OrphanGuard, log: Log) -> None:
        self.orphan_guard = orphan_guard
        self.log = log
        self.children: list[Child] = []
        self.supervised: list[SupervisedChild] = []
        self.stopping = False
        self.stopping_since: float | None = None
        self.partial: dict[Child, bytes] = {}
        self.selector = selectors.DefaultSelector()
        self._listen_for_signals()
        adopt_orphans()

    def start(self, child: Child) -> None:
        """Start a child and print its output."""
        self.orphan_guard.add_group(child.start())
        if child not in self.children:
            self.children.append(child)
        if child.process and child.process.stdout:
            # `_read_output` reads until nothing is left, and must not wait there for the next line of one child.
            os.set_blocking(child.process.stdout.fileno(), False)
            self.selector.register(child.process.stdout, selectors.EVENT_READ, child)

    def keep_running(self, child: Child) -> None:
        """Start a child, and restart it whenever it ends."""
        self.start(child)
        self.supervised.append(SupervisedChild(child))

    def failures(self, name: str) -> int:
        """Return how often in a row the named child has ended soon after its start."""
        return sum(supervised.failures for supervised in self.supervised if supervised.child.name == name)

    def run_to_end(self, child: Child) -> int:
        """Start a child, wait until it ends and return its exit code."""
        self.start(child)
        while (exit_code := child.exit_code) is None:
            self.run_once()
        self._clean_up(child)
        return exit_code

    def run_once(self, timeout: float = 1.0) -> None:
        """Wait for output, signals or the timeout, handle them and restart ended children."""
        for key, _ in self.selector.select(timeout):
            if key.data is None:
                self._read_signals()
            else:
                self._read_output(key.data)
        if not self.stopping:
            for supervised in self.supervised:
                self._restart_if_ended(supervised)

    def stop_all(self) -> None:
        """Stop all children; those that others depend on stop last."""
        self.stopping = True
        self._stop([child for child in self.children if not child.stops_last])
        self._stop(list(self.children))

    def _stop(self, children: list[Child]) -> None:
        for child in children:
            child.terminate()
        started_at = time.monotonic()
        waiting = [child for child in children if child.is_running]
        while waiting:
            self.run_once(0.1)
            for child in waiting:
                if time.monotonic() - started_at > child.stop_timeout:
                    seconds = f"{child.stop_timeout:.0f} s"
                    self.log.line("agentcms", f"{child.name} did not stop within {seconds} and is killed.")
                    child.kill()
            waiting = [child for child in waiting if child.is_running]
        for child in children:
            self._clean_up(child)

    def _clean_up(self, child: Child) -> None:
        """Stop the rest of the group of a child and print its last output."""
        if child not in self.children:
            return
        child.clean_up()
        self.orphan_guard.forget_group(child.group)
        self._read_output(child)
        if child.process and child.process.stdout:
            with contextlib.suppress(KeyError):
                self.selector.unregister(child.process.stdout)
            child.process.stdout.close()
        self.children.remove(child)

    def _restart_if_ended(self, supervised: SupervisedChild) -> None:
        child, now = supervised.child, time.monotonic()
        if supervised.start_at is None and not child.is_running:
            supervised.failures = 1 if now - child.started_at > STABLE_AFTER else supervised.failures + 1
            delay = min(MAX_RESTART_DELAY, 0.25 * 2**supervised.failures)
            self._clean_up(child)
            self.log.line("agentcms", f"{child.name} {describe_exit(child.exit_code)}. Restart in {delay:.1f} s.")
            supervised.start_at = now + delay
        elif supervised.start_at is not None and now >= supervised.start_at:
            supervised.start_at = None
            self.start(child)

    def _read_output(self, child: Child) -> None:
        stream = child.process.stdout if child.process else None
        if stream is None or stream.closed:
            return
        data = None
        with contextlib.suppress(BlockingIOError):
            while data := os.read(stream.fileno(), 65536):
                *lines, self.partial[child] = (self.partial.get(child, b"") + data).split(b"\n")
                for line in lines:
                    self.log.line(child.name, line.decode(errors="replace"))
        if data == b"":  # end of the stream
            with contextlib.suppress(KeyError):
                self.selector.unregister(stream)
            if rest := self.partial.pop(child, b""):
                self.log.line(child.name, rest.decode(errors="replace"))

    def _listen_for_signals(self) -> None:
        self.signals, write = os.pipe()
        for end in (self.signals, write):
            os.set_blocking(end, False)
        # A signal ends the wait of the selector: Python writes its number to the pipe, if it has a handler in Python.
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in STOP_SIGNALS:
            # Under `nohup`, SIGHUP stays ignored.
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, lambda *_: None)
        self.selector.register(self.signals, selectors.EVENT_READ)

    def _read_signals(self) -> None:
        stops = [number for number in os.read(self.signals, 1024) if number in STOP_SIGNALS]
        now = time.monotonic()
        if stops and self.stopping_since is None:
            self.stopping_since = now
            # While all stops already, as after a failed preparation, that must go on to its end.
            if not self.stopping:
                raise StopRequested(signal.Signals(stops[0]).name)
        # A signal to the process group arrives twice: `make` sends it again.
        if stops and self.stopping_since is not None and now - self.stopping_since > SIGNAL_REPEAT_WINDOW:
            self.log.line("agentcms", "Second stop signal: all processes are killed.")
            for child in self.children:
                child.kill()


def describe_exit(exit_code: int | None) -> str:
    """Return a description of an exit code."""
    if exit_code is not None and exit_code < 0:
        return f"was stopped by {signal.Signals(-exit_code).name}"
    return f"ended with exit code {exit_code}"
