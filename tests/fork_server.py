"""Processes of the application, as forks of one that has loaded modules.

A fork takes milliseconds. A new process spends two seconds of CPU on the import of Django and pydantic-ai. The server
has no connections and no threads, so that each fork begins as a new process does.
"""

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from agentcms.server.processes import PROJECT, stop_with_parent

OPTION = "--fork-server"
START_TIMEOUT = 120  # seconds
STOP_TIMEOUT = 10
LONGEST_WAIT = 0.05


# --- In the server


def wait_for_fork() -> list[str]:
    """Fork for each request on the standard input, and report the exit codes. Return its arguments in each fork."""
    received, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    report({})
    while True:
        ready, _, _ = select.select([sys.stdin, received], [], [])
        if received in ready:
            os.read(received, 4096)
            report_ends()
        if sys.stdin in ready:
            if not (line := sys.stdin.readline()):
                sys.exit()
            request, server = json.loads(line), os.getpid()
            if (child := os.fork()) == 0:
                os.close(received)
                signal.set_wakeup_fd(-1)
                os.close(wake)
                become(request, server)
                return list(request["arguments"])
            report({"started": child})


def report(message: dict) -> None:
    os.write(1, f"{json.dumps(message)}\n".encode())


def report_ends() -> None:
    """Report the forks that have ended."""
    while True:
        try:
            child, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if child == 0:
            return
        report({"ended": child, "code": os.waitstatus_to_exitcode(status)})


def become(request: dict, server: int) -> None:
    """Make a fork an ordinary process with an environment and a log of its own. It ends with the server."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    stop_with_parent(server, signal.SIGKILL)()
    if request["start_new_session"]:
        os.setsid()
    for target, path in enumerate((os.devnull, request["log"], request["errors"])):
        source = os.open(path, os.O_APPEND | (os.O_WRONLY if target else os.O_RDONLY))
        os.dup2(source, target)
        os.close(source)
    os.environ.clear()
    os.environ.update(request["environment"])


# --- In the tests


class Fork:
    """A fork with the methods of a Popen."""

    def __init__(self, server: "ForkServer", pid: int) -> None:
        self.server = server
        self.pid = pid

    def poll(self) -> int | None:
        self.server.receive(0)
        return self.server.codes.get(self.pid)

    def wait(self, seconds: float) -> int:
        deadline = time.monotonic() + seconds
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(f"fork {self.pid}", seconds)
            self.server.receive(max(0.0, deadline - time.monotonic()))
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """A process that forks. `command` is that of a module that calls `wait_for_fork` with the option."""

    def __init__(self, command: list[str], environment: dict[str, str], folder: Path) -> None:
        self.codes: dict[int, int] = {}
        self.lock = threading.RLock()
        self.log = folder / "fork-server.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, *command, OPTION],
                env=environment,
                cwd=PROJECT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,
            )
        self.messages: list[dict] = []
        self.output: IO[bytes] = self.process.stdout
        self.rest = b""
        self.next_message(START_TIMEOUT)

    def fork(
        self,
        environment: dict[str, str],
        log: Path,
        arguments: Sequence[str] = (),
        errors: Path | None = None,
        start_new_session: bool = False,
    ) -> Fork:
        """Start a process that appends to the log, and its errors to another file if there is one."""
        for path in filter(None, (log, errors)):
            path.touch()
        request = {
            "environment": environment,
            "log": str(log),
            "errors": str(errors or log),
            "arguments": [*arguments],
            "start_new_session": start_new_session,
        }
        with self.lock:
            self.process.stdin.write(f"{json.dumps(request)}\n".encode())
            return Fork(self, self.next_message(20)["started"])

    def next_message(self, seconds: float) -> dict:
        """Return the next message that is not about an end."""
        deadline = time.monotonic() + seconds
        while not self.messages:
            assert time.monotonic() < deadline, self.log.read_text(errors="replace")
            self.receive(0.1)
        return self.messages.pop(0)

    def receive(self, seconds: float) -> None:
        """Read the messages that arrive within so many seconds, but not so long that another thread waits for it."""
        with self.lock:
            if select.select([self.output], [], [], min(seconds, LONGEST_WAIT))[0]:
                self.read_messages()

    def read_messages(self) -> None:
        content = os.read(self.output.fileno(), 65536)
        assert content, self.log.read_text(errors="replace")
        *lines, self.rest = (self.rest + content).split(b"\n")
        for line in lines:
            if not line.startswith(b"{"):  # a module printed it
                continue
            message = json.loads(line)
            if "ended" in message:
                self.codes[message["ended"]] = message["code"]
            else:
                self.codes.pop(message.get("started"), None)  # of an earlier fork with the same ID
                self.messages.append(message)

    def stop(self) -> None:
        self.process.stdin.close()
        self.process.wait(STOP_TIMEOUT)


class ForkServers:
    """The fork servers of a worker of the tests, one for each command and environment."""

    def __init__(self, new_folder) -> None:
        self.new_folder = new_folder
        self.servers: dict[tuple, ForkServer] = {}
        self.folders: dict[tuple, dict[str, str]] = {}

    def fork(self, command: list[str], environment: dict[str, str], own: dict[str, str], log: Path) -> Fork:
        """Start the command as a fork. `own` are the variables that differ from fork to fork."""
        key = (*command, *sorted(environment.items()))
        if key not in self.servers:
            folder = self.new_folder()
            self.folders[key] = {"DATA_DIR": str(folder)}
            first = {**environment, **dict.fromkeys(own, str(folder)), **self.folders[key]}
            self.servers[key] = ForkServer(command, first, folder)
        return self.servers[key].fork({**environment, **self.folders[key], **own}, log)

    def stop(self) -> None:
        for server in self.servers.values():
            server.stop()
