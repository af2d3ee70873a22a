"""The one command: everything that serves Agent CMS, started in order and stopped completely.

`make run` calls this. DATA_DIR, HOST, PORT, DATABASE_URL, REDIS_URL, CELERY_BROKER_URL, WEB_WORKERS, WEB_THREADS,
RUN_STREAMS and DEMO_DATA are read from the environment.
"""

import contextlib
import fcntl
import json
import os
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from agentcms import environment
from agentcms.server.processes import PROJECT, Child, Watchdog, end_with_parent
from agentcms.server.supervisor import Log, StopRequested, Supervisor
from agentcms.server.valkey import Valkey, remove_stale_socket

WAIT_FOR_PREDECESSOR = 15.0  # seconds: a killed start is being cleared up
WAIT_FOR_VALKEY = 20.0  # seconds: a large file takes a while to load
WAIT_FOR_FIRST_PAGE = 10.0  # seconds before the worker is started anyhow


class CannotStart(Exception):
    """A reason in one sentence, for the person at the keyboard."""


@dataclass(frozen=True)
class ServerConfig:
    """What the environment asks for."""

    data: Path
    host: str
    port: int
    workers: int
    threads: int
    streams: int

    @classmethod
    def from_environment(cls) -> "ServerConfig":
        return cls(
            data=Path(environment.read_text("DATA_DIR", str(PROJECT / "var"))).resolve(),
            host=environment.read_text("HOST", "127.0.0.1"),
            port=environment.read_int("PORT", 8000, minimum=1),
            workers=environment.read_int("WEB_WORKERS", 2, minimum=1),
            threads=environment.read_int("WEB_THREADS", 16, minimum=1),
            streams=environment.read_int("RUN_STREAMS", 48, minimum=1),
        )

    @property
    def reachable_host(self) -> str:
        """Where this machine reaches a server that listens everywhere."""
        return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104

    @property
    def address(self) -> str:
        host = f"[{self.reachable_host}]" if ":" in self.reachable_host else self.reachable_host
        return f"http://{host}:{self.port}/"


def main() -> int:
    if "--stop-with-parent" in sys.argv[1:]:
        end_with_parent(os.getppid())()
    try:
        return run(ServerConfig.from_environment())
    except (CannotStart, ImproperlyConfigured) as error:
        print(error, file=sys.stderr)
    except OSError as error:
        print(f"Agent CMS cannot start: {error}.", file=sys.stderr)
    return 1


def run(plan: ServerConfig) -> int:
    plan.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    with data_dir_lock(plan.data) as lock, Watchdog(keep_open=[lock]) as guard:
        check_port(plan)
        supervisor = Supervisor(guard, Log(sys.stdout))
        try:
            serve(plan, supervisor)
        except StopRequested as request:
            supervisor.log.line("agentcms", f"Stopping ({request}).")
        finally:
            supervisor.end_all()
            (plan.data / "valkey.url").unlink(missing_ok=True)
        supervisor.log.line("agentcms", "Stopped.")
    return 0


def serve(plan: ServerConfig, supervisor: Supervisor) -> None:
    """Start one thing after the other, then keep them running until somebody asks to stop."""
    variables = {**os.environ, "DATA_DIR": str(plan.data), "PYTHONUNBUFFERED": "1"}
    with start_broker(plan, supervisor, variables) as address:
        variables |= address
        if supervisor.finish(Child("prepare", python("-m", "agentcms.server.prepare"), variables)):
            raise CannotStart("The database, the static files or the demo data could not be prepared: see above.")
        supervisor.keep(web_process(plan, variables))
        # Alone, it answers a second earlier.
        answered = wait_for_first_page(plan, supervisor, longest=WAIT_FOR_FIRST_PAGE)
        supervisor.keep(worker_process(variables))
        while not answered:
            answered = wait_for_first_page(plan, supervisor, longest=60)
        for line in startup_lines(plan):
            supervisor.log.line("agentcms", line)
        while True:
            supervisor.turn()


# --- Before anything starts


def check_port(plan: ServerConfig) -> None:
    """Say so now if the port is taken, in words that help."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(plan.host, plan.port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except (OSError, OverflowError) as error:
        raise CannotStart(
            f"Port {plan.port} on {plan.host} cannot be used: {getattr(error, 'strerror', None) or error}. "
            f"Choose another one, for example: PORT={plan.port % 65535 + 1} make run"
        ) from None


@contextlib.contextmanager
def data_dir_lock(data: Path) -> Iterator[int]:
    """Have the data folder to ourselves; the lock is held until the last of our processes has ended."""
    lock = os.open(data / "run.pid", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        acquire_lock(lock, data)
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
        yield lock
        os.ftruncate(lock, 0)
    finally:
        os.close(lock)


def acquire_lock(lock: int, data: Path) -> None:
    deadline = time.monotonic() + WAIT_FOR_PREDECESSOR
    while True:
        with contextlib.suppress(BlockingIOError):
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        holder = os.pread(lock, 32, 0).decode()
        if is_running(holder) or time.monotonic() > deadline:
            raise CannotStart(
                f"The data folder {data} is in use by process {holder or 'unknown'}. "
                "Stop that one, or give this one its own: DATA_DIR=./var2 PORT=8001 make run"
            )
        time.sleep(0.05)


def is_running(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True


# --- The parts


@contextlib.contextmanager
def start_broker(plan: ServerConfig, supervisor: Supervisor, variables: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """What the others need in their environment to reach the broker: ours, unless somebody brought one."""
    note = plan.data / "valkey.url"
    if variables.get("REDIS_URL") or variables.get("CELERY_BROKER_URL"):
        note.unlink(missing_ok=True)
        yield {}
        return
    remove_stale_socket(environment.read_address_file(note))
    server = Valkey(plan.data / "valkey")
    supervisor.guard.remove(server.sockets)
    supervisor.guard.remove(note)
    supervisor.keep(server.child(variables))
    deadline = time.monotonic() + WAIT_FOR_VALKEY
    while not server.answers():
        supervisor.turn(0.02)
        if supervisor.deaths("valkey") or time.monotonic() > deadline:
            raise CannotStart(f"The embedded Valkey did not start. See {server.log}.")
    note.write_text(server.address)
    yield {"REDIS_URL": server.address}


def python(*arguments: str) -> list[str]:
    return [sys.executable, *arguments]


def web_process(plan: ServerConfig, variables: Mapping[str, str]) -> Child:
    options = {
        "--interface": "wsgi",
        "--host": plan.host,
        "--port": str(plan.port),
        "--workers": str(plan.workers),
        "--blocking-threads": str(plan.threads + plan.streams),
        "--respawn-interval": "0.5",
        "--workers-kill-timeout": "5",
        "--log-level": "error",
    }
    flat = [word for pair in options.items() for word in pair]
    command = python("-m", "granian", *flat, "--respawn-failed-workers", "--no-ws", "agentcms.wsgi:application")
    return Child("web", command, variables)


def worker_process(variables: Mapping[str, str]) -> Child:
    # It takes JSON alone, so that being root, as in most containers, is no danger to warn of.
    return Child("worker", python("-W", "ignore:You're running the worker", "-m", "agentcms.server.worker"), variables)


def wait_for_first_page(plan: ServerConfig, supervisor: Supervisor, longest: float) -> bool:
    """Wait until the first page really answers, at most so many seconds."""
    deadline = time.monotonic() + longest
    while (status := first_page_status(plan)) is None or status >= 500:
        supervisor.turn(0.05)
        if supervisor.deaths("web") >= 3:
            raise CannotStart("The web server ended three times before it answered once: see above.")
        if time.monotonic() > deadline:
            supervisor.log.line("agentcms", f"{plan.address} does not answer yet (status {status}).")
            return False
    return True


def first_page_status(plan: ServerConfig) -> int | None:
    """The status of the first page, or None where nobody answers. By hand: a client of HTTP is 4 MB that stay."""
    try:
        with socket.create_connection((plan.reachable_host, plan.port), timeout=5) as connection:
            connection.sendall(f"GET / HTTP/1.0\r\nHost: {plan.reachable_host}\r\n\r\n".encode())
            return int(connection.recv(64).split()[1])
    except (OSError, ValueError, IndexError):
        return None


def startup_lines(plan: ServerConfig) -> Iterator[str]:
    yield f"Agent CMS is at {plan.address}"
    for user in demo_users(plan.data / "demo_passwords.json"):
        yield f"  sign in as {user['username']} ({user['role']}), password {user['password']}"
    yield f"Data: {plan.data}. Ctrl-C stops everything."


def demo_users(path: Path) -> list[dict[str, str]]:
    try:
        users: list[dict[str, str]] = json.loads(path.read_text())["users"]
    except (OSError, ValueError, KeyError):
        return []
    return users


if __name__ == "__main__":
    sys.exit(main())
