"""One loop that prints what the children say, starts those again that die, and ends all of them in good order."""

import contextlib
import os
import selectors
import signal
import time
from dataclasses import dataclass
from typing import IO

from agentcms.server.processes import Child, Watchdog, adopt_orphans

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SIGNAL_REPEAT_WINDOW = 0.5  # seconds within which a second signal is the same one
STABLE_AFTER = 30.0  # seconds after which a start counts as successful
MAX_RESTART_DELAY = 30.0  # seconds before a child that keeps dying is started again
LOG_COLOURS = {"web": 36, "worker": 35, "valkey": 34, "prepare": 32, "agentcms": 1}


class StopRequested(Exception):
    """Somebody asked the application to stop."""


class Log:
    """Lines with the name of who says them in front, coloured on a terminal only."""

    def __init__(self, out: IO[str]) -> None:
        self.out = out
        self.colour = out.isatty() and "NO_COLOR" not in os.environ

    def line(self, name: str, text: str) -> None:
        label = f"{name:8} |"
        if self.colour:
            label = f"\033[{LOG_COLOURS.get(name, 37)}m{label}\033[0m"
        # A closed terminal or a finished `| head` must not end the application in the middle of stopping.
        with contextlib.suppress(OSError, ValueError):
            self.out.write(f"{label} {text}\n")
            self.out.flush()


@dataclass(eq=False)
class SupervisedChild:
    """A child that is started again when it ends."""

    child: Child
    deaths: int = 0
    start_at: float | None = None


class Supervisor:
    """Has the children, the signals and the log in its one thread."""

    def __init__(self, guard: Watchdog, log: Log) -> None:
        self.guard = guard
        self.log = log
        self.children: list[Child] = []
        self.kept: list[SupervisedChild] = []
        self.stopping = False
        self.stopping_since: float | None = None
        self.partial: dict[Child, bytes] = {}
        self.selector = selectors.DefaultSelector()
        self._listen_for_signals()
        adopt_orphans()

    # --- What the story of a start is told with

    def start(self, child: Child) -> None:
        """Start a child and print what it says."""
        self.guard.started(child.start())
        if child not in self.children:
            self.children.append(child)
        if child.process and child.process.stdout:
            os.set_blocking(child.process.stdout.fileno(), False)
            self.selector.register(child.process.stdout, selectors.EVENT_READ, child)

    def keep(self, child: Child) -> None:
        """Start a child, and start it again whenever it ends."""
        self.start(child)
        self.kept.append(SupervisedChild(child))

    def deaths(self, name: str) -> int:
        """How often in a row the kept child of this name has died soon after its start."""
        return sum(kept.deaths for kept in self.kept if kept.child.name == name)

    def finish(self, child: Child) -> int:
        """Start a child and wait until it has ended; its exit code."""
        self.start(child)
        while (exit_code := child.exit_code) is None:
            self.turn()
        self._bury(child)
        return exit_code

    def turn(self, longest: float = 1.0) -> None:
        """Wait for something to happen, at most so many seconds, and deal with it."""
        for key, _ in self.selector.select(longest):
            if key.data is None:
                self._read_signals()
            else:
                self._read_output(key.data)
        if not self.stopping:
            for kept in self.kept:
                self._revive(kept)

    def end_all(self) -> None:
        """End the children, and after them those that they lean on."""
        self.stopping = True
        self._end([child for child in self.children if not child.is_foundation])
        self._end(list(self.children))

    # --- How it is done

    def _end(self, children: list[Child]) -> None:
        for child in children:
            child.ask_to_end()
        asked_at = time.monotonic()
        waiting = [child for child in children if child.is_running]
        while waiting:
            self.turn(0.1)
            for child in waiting:
                if time.monotonic() - asked_at > child.patience:
                    self.log.line("agentcms", f"{child.name} did not end within {child.patience:.0f} s and is killed.")
                    child.kill()
            waiting = [child for child in waiting if child.is_running]
        for child in children:
            self._bury(child)

    def _bury(self, child: Child) -> None:
        """End what is left of a child's group, and print its last words."""
        if child not in self.children:
            return
        child.clear_up()
        self.guard.ended(child.group)
        self._read_output(child)
        if child.process and child.process.stdout:
            with contextlib.suppress(KeyError):
                self.selector.unregister(child.process.stdout)
            child.process.stdout.close()
        self.children.remove(child)

    def _revive(self, kept: SupervisedChild) -> None:
        child, now = kept.child, time.monotonic()
        if kept.start_at is None and not child.is_running:
            kept.deaths = 1 if now - child.started_at > STABLE_AFTER else kept.deaths + 1
            pause = min(MAX_RESTART_DELAY, 0.25 * 2**kept.deaths)
            self._bury(child)
            self.log.line(
                "agentcms", f"{child.name} {describe_exit(child.exit_code)}. It starts again in {pause:.1f} s."
            )
            kept.start_at = now + pause
        elif kept.start_at is not None and now >= kept.start_at:
            kept.start_at = None
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
        if data == b"":  # the other end is closed
            with contextlib.suppress(KeyError):
                self.selector.unregister(stream)
            if rest := self.partial.pop(child, b""):
                self.log.line(child.name, rest.decode(errors="replace"))

    def _listen_for_signals(self) -> None:
        self.signals, write = os.pipe()
        for end in (self.signals, write):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in STOP_SIGNALS:
            # `nohup` ignores hang-ups on purpose.
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, lambda *_: None)
        self.selector.register(self.signals, selectors.EVENT_READ)

    def _read_signals(self) -> None:
        stops = [number for number in os.read(self.signals, 1024) if number in STOP_SIGNALS]
        now = time.monotonic()
        if stops and self.stopping_since is None:
            self.stopping_since = now
            raise StopRequested(signal.Signals(stops[0]).name)
        # A signal to the whole group reaches us twice, the second time from make.
        if stops and self.stopping_since is not None and now - self.stopping_since > SIGNAL_REPEAT_WINDOW:
            self.log.line("agentcms", "Asked again: everything is killed.")
            for child in self.children:
                child.kill()


def describe_exit(exit_code: int | None) -> str:
    """An exit code in words."""
    if exit_code is not None and exit_code < 0:
        return f"was ended by {signal.Signals(-exit_code).name}"
    return f"ended with exit code {exit_code}"
