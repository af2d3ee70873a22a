"""Child processes that never outlive us.

Each child leads a process group of its own, so that it can be ended together with everything it started. On Linux the
kernel ends it when its parent is killed; everywhere a watchdog ends the groups that are left.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from agentcms.server import watchdog

PROJECT = Path(__file__).resolve().parent.parent.parent
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def end_with_parent(parent: int, number: int = signal.SIGTERM) -> Callable[[], None]:
    """What a new child runs first: the kernel is to send it this signal when its parent dies."""

    def ask() -> None:
        if LIBC:
            LIBC.prctl(PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:  # it died before we could ask
            os._exit(1)

    return ask


def adopt_orphans() -> None:
    """Become the parent of what our children leave behind, so that we can bury it where process 1 does not."""
    if LIBC:
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1)


class Watchdog:
    """A small process that outlives us just long enough to clear up after us."""

    def __init__(self, keep_open: Sequence[int] = ()) -> None:
        """The file descriptors to keep open are locks: they are held until everything has ended."""
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", watchdog.__file__],
            stdin=subprocess.PIPE,
            text=True,
            start_new_session=True,
            pass_fds=keep_open,
        )

    def started(self, group: int) -> None:
        self._tell(f"started {group}")

    def ended(self, group: int) -> None:
        self._tell(f"ended {group}")

    def remove(self, path: Path) -> None:
        """Remove this folder or file in the end, however the end comes."""
        self._tell(f"remove {path}")

    def _tell(self, line: str) -> None:
        # Without a watchdog we are worse guarded, which is no reason to stop working.
        with contextlib.suppress(BrokenPipeError):
            stdin = self._stdin()
            stdin.write(line + "\n")
            stdin.flush()

    def _stdin(self) -> IO[str]:
        assert self.process.stdin is not None  # noqa: S101
        return self.process.stdin

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._stdin().close()
        self.process.wait()


class Child:
    """A program that we start, and end with everything that it started."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        patience: float = 10.0,
        output: int = subprocess.PIPE,
        is_foundation: bool = False,
    ) -> None:
        """`patience` is how many seconds it gets to end by itself; a foundation ends after the others."""
        self.name = name
        self.command = command
        self.environment = environment
        self.patience = patience
        self.output = output
        self.is_foundation = is_foundation
        self.process: subprocess.Popen[bytes] | None = None
        self.started_at = 0.0

    def start(self) -> int:
        """Start it, and answer with its process group."""
        self.process = subprocess.Popen(
            self.command,
            env=dict(self.environment),
            cwd=PROJECT,
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=subprocess.STDOUT,
            process_group=0,
            preexec_fn=end_with_parent(os.getpid()),
        )
        self.started_at = time.monotonic()
        return self.process.pid

    @property
    def group(self) -> int:
        assert self.process is not None  # noqa: S101
        return self.process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs or before it was started; negative for a signal."""
        return self.process.poll() if self.process else None

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def ask_to_end(self) -> None:
        """Ask its first process, which knows best how to end the others."""
        if self.process and self.is_running:
            self.process.terminate()

    def kill(self) -> None:
        """End its whole process group now."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.group, signal.SIGKILL)

    def clear_up(self) -> None:
        """End what the first process left behind, and wait until nothing is left: it could still hold the port."""
        self.kill()
        if self.process:
            self.process.wait()
        deadline = time.monotonic() + 5
        while self._anybody_left() and time.monotonic() < deadline:
            time.sleep(0.01)

    def _anybody_left(self) -> bool:
        # Adopted orphans are ours to bury; until then they count as members of the group.
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-self.group, os.WNOHANG)[0]:
                pass
        try:
            os.killpg(self.group, 0)
        except (ProcessLookupError, PermissionError):
            return False
        return True


@contextlib.contextmanager
def running(child: Child) -> Iterator[Child]:
    """The child, guarded by a watchdog, for as long as the block runs."""
    with Watchdog() as guard:
        guard.started(child.start())
        try:
            yield child
        finally:
            child.ask_to_end()
            with contextlib.suppress(subprocess.TimeoutExpired):
                assert child.process is not None  # noqa: S101
                child.process.wait(child.patience)
            child.clear_up()
            guard.ended(child.group)
