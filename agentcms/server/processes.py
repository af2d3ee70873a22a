"""Child processes that never outlive the supervisor.

Each child leads its own process group, so that it can be stopped together with its children. On Linux the kernel
stops a child whose parent was killed; on all systems a guard process stops the remaining groups.
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

from agentcms.server import orphan_guard

PROJECT = Path(__file__).resolve().parent.parent.parent
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def stop_with_parent(parent: int, number: int = signal.SIGTERM) -> Callable[[], None]:
    """Return a function for a new child: it asks the kernel for this signal when the parent dies."""

    def request_signal() -> None:
        if LIBC:
            LIBC.prctl(PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:  # the parent died before the request
            os._exit(1)

    return request_signal


def adopt_orphans() -> None:
    """Become the parent of orphaned grandchildren, so that they are reaped even where process 1 does not do it."""
    if LIBC:
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1)


class OrphanGuard:
    """A small process that stops all groups and removes temporary files when this process ends."""

    def __init__(self, keep_open: Sequence[int] = ()) -> None:
        """Start the process. `keep_open` are file descriptors of locks, which it holds until everything stopped."""
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", orphan_guard.__file__],
            stdin=subprocess.PIPE,
            text=True,
            start_new_session=True,  # or Ctrl-C in the terminal would end it first
            pass_fds=keep_open,
        )

    def add_group(self, group: int) -> None:
        """Stop this process group at the end."""
        self._send(f"started {group}")

    def forget_group(self, group: int) -> None:
        """Leave out a process group that has stopped."""
        self._send(f"ended {group}")

    def remove_at_end(self, path: Path) -> None:
        """Remove this folder or file at the end, even after a crash."""
        self._send(f"remove {path}")

    def _send(self, line: str) -> None:
        # The application works without this process too; it is only less protected.
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
    """A program that is started as a child process and stopped together with its own children."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        stop_timeout: float = 10.0,
        output: int = subprocess.PIPE,
        stops_last: bool = False,
    ) -> None:
        """Set up a child. It is killed `stop_timeout` seconds after it was asked to stop."""
        self.name = name
        self.command = command
        self.environment = environment
        self.stop_timeout = stop_timeout
        self.output = output
        self.stops_last = stops_last
        self.process: subprocess.Popen[bytes] | None = None
        self.started_at = 0.0

    def start(self) -> int:
        """Start the process and return its process group."""
        self.process = subprocess.Popen(
            self.command,
            env=dict(self.environment),
            cwd=PROJECT,
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=subprocess.STDOUT,
            # A group of its own also keeps Ctrl-C in the terminal from the children: the supervisor stops them in
            # order.
            process_group=0,
            preexec_fn=stop_with_parent(os.getpid()),
        )
        self.started_at = time.monotonic()
        return self.process.pid

    @property
    def group(self) -> int:
        assert self.process is not None  # noqa: S101
        return self.process.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code, or None before the end; negative for a signal."""
        return self.process.poll() if self.process else None

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def terminate(self) -> None:
        """Send SIGTERM to the first process only: it stops its own children in order."""
        if self.process and self.is_running:
            self.process.terminate()

    def kill(self) -> None:
        """Kill the whole process group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.group, signal.SIGKILL)

    def clean_up(self) -> None:
        """Kill the rest of the group and wait until it is gone: a remaining process could still use the port."""
        self.kill()
        if self.process:
            self.process.wait()
        deadline = time.monotonic() + 5
        while self._has_members() and time.monotonic() < deadline:
            time.sleep(0.01)

    def _has_members(self) -> bool:
        # Reap adopted orphans: until then they count as members of the group.
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-self.group, os.WNOHANG)[0]:
                pass
        try:
            # Signal 0 is not delivered. The call fails if nobody is left to get it.
            os.killpg(self.group, 0)
        except (ProcessLookupError, PermissionError):
            return False
        return True


@contextlib.contextmanager
def running_child(child: Child) -> Iterator[Child]:
    """Run a child, protected by a guard of orphans, during the block."""
    with OrphanGuard() as guard:
        guard.add_group(child.start())
        try:
            yield child
        finally:
            child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                assert child.process is not None  # noqa: S101
                child.process.wait(child.stop_timeout)
            child.clean_up()
            guard.forget_group(child.group)
