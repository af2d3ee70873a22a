"""The processes of a copy, as forks of one that has loaded the libraries.

A copy has four processes. Each would load Django, pydantic-ai and Celery for a second of CPU. The settings and the
applications, which depend on the environment of the copy, are loaded after the fork.
"""

import atexit
import ctypes
import os
import runpy
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from agentcms.process.start import loading_modules
from tests.fork_server import wait_for_fork

# What takes most of the time, and reads neither the environment nor the settings of Django.
LIBRARIES = (
    "celery.beat",
    "celery.bin.worker",
    "celery.worker.worker",
    "django.contrib.admin",
    "django.core.handlers.wsgi",
    "django.core.management.commands.migrate",
    "django.db.models",
    "granian.server.mp",
    "psycopg",
    "psycopg_pool",
    "pydantic_ai",
    "rapidfuzz.fuzz",
    "redis.asyncio",
    "requests",
)
SUPERVISOR = "agentcms.server.run"
# Each process writes its own command line over that of this one.
SPACE = "-" * 200
FIRST_CLOSED = 3  # file descriptor


def main() -> int:
    with loading_modules():
        for name in LIBRARIES:
            import_module(name)
    arguments = wait_for_fork()
    if arguments[1] == SUPERVISOR:
        subprocess.Popen = ForkingPopen
    return run(arguments)


def run(arguments: list[str]) -> int:
    """Do what Python does with these arguments: `-m` and a module, after filters of warnings. Return the exit code."""
    write_command_line([sys.executable, *arguments])
    while arguments[0] == "-W":
        action, _, message = arguments[1].partition(":")
        warnings.filterwarnings(action, message=message)  # type: ignore[arg-type]
        arguments = arguments[2:]
    sys.argv = arguments[1:]
    try:
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def write_command_line(words: list[str]) -> None:
    """Let this process have the command line of an own start, by which tests find it. A long one is cut."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = int(fields[45]), int(fields[46])
    line = b"\0".join(map(os.fsencode, words))[: end - start - 1]
    ctypes.memmove(start, line.ljust(end - start, b"\0"), end - start)


class ForkingPopen(subprocess.Popen):
    """A Popen that forks this process where its command is a module for the same Python."""

    def _execute_child(self, args: Any, executable: Any, preexec_fn: Any, *options: Any) -> None:
        if not (isinstance(args, list) and args[0] == sys.executable and "-m" in args):
            super()._execute_child(args, executable, preexec_fn, *options)
            return
        _, _, _, environment, _, _, _, p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite = options[:13]
        group = options[-1]

        def become() -> None:
            os.setpgid(0, group) if group >= 0 else None
            preexec_fn()
            use_streams(p2cread, c2pwrite, errwrite)
            os.environ.clear()
            os.environ.update(environment)

        self.pid = fork(become, args[1:])
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)


def fork(become: Callable[[], None], arguments: list[str]) -> int:
    """Fork a process that runs these arguments, and return its id."""
    if pid := os.fork():
        return pid
    code = 1
    try:
        reset_process()
        become()
        code = run(arguments)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with suppress(BaseException):
            threading._shutdown()
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def reset_process() -> None:
    """Undo what a new process does not inherit: the handlers of signals, and this Popen."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:  # what is ignored stays so in a new process too
        signal.signal(signal.SIGINT, signal.default_int_handler)
    subprocess.Popen = ORIGINAL_POPEN


def use_streams(stdin: int, stdout: int, stderr: int) -> None:
    """Use these file descriptors as the standard streams, and close all others."""
    for source, target in ((stdin, 0), (stdout, 1), (stderr, 2)):
        if source >= 0:  # else that of the parent
            os.dup2(source, target)
    os.closerange(FIRST_CLOSED, os.sysconf("SC_OPEN_MAX"))
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, write_through=True)


ORIGINAL_POPEN = subprocess.Popen

if __name__ == "__main__":
    sys.exit(main())
