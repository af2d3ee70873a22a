"""The processes of a copy, as forks of one that has loaded the libraries.

A copy has five processes. Each would load Django, pydantic-ai and Celery for a second of CPU. The settings and the
applications depend on the environment of the copy. Its supervisor loads them before it forks the first process.
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

from agentcms.process.module_loading import loading_modules
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
# What the web server and the worker load of the project. The modules that they start with change the process.
APPLICATION = ("agentcms.urls", "agentcms.gateway.application")
WEB_VARIABLES = {"HOST", "PORT", "WEB_WORKERS", "WEB_STOP_TIMEOUT"}  # which no settings read
# Each process writes its own command line over that of this one.
SPACE = "-" * 200


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


class Application:
    """The settings and the applications of the environment for which they were loaded first."""

    def __init__(self) -> None:
        self.environment: dict[str, str] = {}
        self.variables: dict[str, str] = {}  # with those that the application sets
        self.files: set[int] = set()
        self.is_loaded = False

    def load(self, environment: dict[str, str]) -> bool:
        """Load the application for this environment. Return whether a fork is like a new process with it."""
        if environment.get("DEMO_DATA") != "no":
            return True  # nothing is loaded: the address of the demo's MCP server is known later
        if not self.environment:
            self.environment = without_web_variables(environment)
            own, files = dict(os.environ), open_files()
            use_environment(environment)
            with suppress(Exception):  # the new process reports it
                load_application()
                self.is_loaded = True
            self.variables, self.files = dict(os.environ), open_files() - files
            use_environment(own)
        return self.is_loaded and self.environment == without_web_variables(environment)


def load_application() -> None:
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentcms.settings")
    with loading_modules():
        django.setup()
        for name in APPLICATION:
            import_module(name)
        import_module("runs_app.engine.engine").preload()
        import_module("agentcms.celery").app.loader.import_default_modules()
    for path in import_module("agentcms.observability.metrics").METRICS_DIR.glob(f"*_{os.getpid()}.db"):
        path.unlink()  # a new process has files of its own


def without_web_variables(environment: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name not in WEB_VARIABLES}


def open_files() -> set[int]:
    folder = Path("/proc/self/fd")
    # The list has the folder itself, which is closed again.
    return {int(name) for name in os.listdir(folder) if os.path.lexists(folder / name)}


def use_environment(environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)


class ForkingPopen(subprocess.Popen):
    """A Popen that forks this process where its command is a module of the application for the same Python."""

    application = Application()

    def _execute_child(self, args: Any, executable: Any, preexec_fn: Any, *options: Any) -> None:
        is_module = isinstance(args, list) and args[0] == sys.executable and "-m" in args
        if not (is_module and self.application.load(options[3])):
            super()._execute_child(args, executable, preexec_fn, *options)
            return
        _, _, _, environment, _, _, _, p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite = options[:13]
        group = options[-1]

        def become() -> None:
            os.setpgid(0, group) if group >= 0 else None
            preexec_fn()
            use_streams(p2cread, c2pwrite, errwrite, keep_open=self.application.files)
            use_environment({**self.application.variables, **environment})

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


def use_streams(stdin: int, stdout: int, stderr: int, keep_open: set[int]) -> None:
    """Use these file descriptors as the standard streams, and close all others but those of the application."""
    for source, target in ((stdin, 0), (stdout, 1), (stderr, 2)):
        if source >= 0:  # else that of the parent
            os.dup2(source, target)
    for file in open_files() - keep_open - {0, 1, 2}:
        os.close(file)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, write_through=True)


ORIGINAL_POPEN = subprocess.Popen

if __name__ == "__main__":
    sys.exit(main())
