"""The command that starts Agent CMS with all its processes, in order, and stops them completely.

`make run` calls this. DATA_DIR, HOST, PORT, DATABASE_URL, REDIS_URL, CELERY_BROKER_URL, WEB_WORKERS and DEMO_DATA are
read from the environment.
"""

import argparse
import contextlib
import fcntl
import json
import os
import shlex
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from agentcms import environment
from agentcms.first_user import FIRST_USER_COMMAND, NO_USERS_FILE
from agentcms.server.demo_mcp import demo_mcp_process, demo_mcp_variables
from agentcms.server.listening import CannotListen, find_listening_address
from agentcms.server.processes import PROJECT, Child, OrphanGuard, stop_with_parent
from agentcms.server.supervisor import Log, StopRequested, Supervisor
from agentcms.server.valkey import Valkey, remove_stale_socket

LOCK_TIMEOUT = 15.0  # seconds for the guard of a killed start to clean up
VALKEY_TIMEOUT = 20.0  # seconds for Valkey to load a large file
FIRST_PAGE_TIMEOUT = 10.0  # seconds before the worker starts without waiting longer
NO_SHARED_CACHE = (
    "CELERY_BROKER_URL is set without REDIS_URL, so the processes share no cache. Each counts throttled calls alone, "
    "editors may not see who else has an agent open, and events of runs arrive up to 0.25 seconds later. "
    "Set REDIS_URL, or neither of them to use the embedded Valkey."
)


class CannotStart(Exception):
    """An error that the command prints without a traceback."""


@dataclass(frozen=True)
class ServerConfig:
    """The configuration of the processes."""

    data: Path
    host: str
    port: int
    workers: int

    @classmethod
    def from_environment(cls) -> "ServerConfig":
        """Return the configuration of the environment variables. Raise ImproperlyConfigured."""
        return cls(
            data=Path(environment.read_text("DATA_DIR", str(PROJECT / "var"))).resolve(),
            host=environment.read_text("HOST", "127.0.0.1"),
            port=environment.read_int("PORT", 8000, minimum=1),
            workers=environment.read_int("WEB_WORKERS", 2, minimum=1),
        )

    @property
    def reachable_host(self) -> str:
        """The host for connections from this machine, also where the server listens on all addresses."""
        return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104

    @property
    def address(self) -> str:
        """The URL of the start page."""
        host = f"[{self.reachable_host}]" if ":" in self.reachable_host else self.reachable_host
        return f"http://{host}:{self.port}/"


def main() -> int:
    options = parse_command_line()
    os.umask(0o077)  # the data of Valkey is for this user only, as that of all processes
    if options.stop_with_parent:
        stop_with_parent(os.getppid())()
    try:
        return run(ServerConfig.from_environment())
    except (CannotStart, CannotListen, ImproperlyConfigured) as error:
        print(error, file=sys.stderr)
    except OSError as error:
        print(f"Agent CMS cannot start: {error}.", file=sys.stderr)
    return 1


def parse_command_line() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m agentcms.server.run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stop-with-parent", action="store_true", help="stop when the process that started this ends")
    return parser.parse_args()


def run(config: ServerConfig) -> int:
    """Run the server until a stop signal; return the exit code. Raise the errors that `main` prints."""
    environment.create_data_folder(config.data)
    with data_dir_lock(config.data) as lock, OrphanGuard(keep_open=[lock]) as orphan_guard:
        check_port(config)
        supervisor = Supervisor(orphan_guard, Log(sys.stdout))
        try:
            serve(config, supervisor)
        except StopRequested as request:
            supervisor.log.line("agentcms", f"Stopping ({request}).")
        finally:
            supervisor.stop_all()
            (config.data / "valkey.url").unlink(missing_ok=True)
        supervisor.log.line("agentcms", "Stopped.")
    return 0


def serve(config: ServerConfig, supervisor: Supervisor) -> None:
    """Start the processes in order and keep them running until a stop signal."""
    variables = {**os.environ, "DATA_DIR": str(config.data), "PYTHONUNBUFFERED": "1"}
    with start_broker(config, supervisor, variables) as address:
        variables |= address | demo_mcp_variables(config.data)
        if supervisor.run_to_end(Child("prepare", python("-m", "agentcms.server.prepare"), variables)):
            raise CannotStart("The start could not be prepared: see above.")
        demo = demo_mcp_process(config.data, variables)
        variables |= demo[1] if demo else {}
        check_port(config)  # another copy may have started meanwhile, and the web server would share its port
        supervisor.keep_running(web_process(config, variables))
        # Start the worker later: the web server alone starts a second faster.
        is_ready = wait_for_first_page(config, supervisor, timeout=FIRST_PAGE_TIMEOUT)
        supervisor.keep_running(worker_process(variables))
        if demo:
            supervisor.keep_running(demo[0])
        while not is_ready:
            is_ready = wait_for_first_page(config, supervisor, timeout=60)
        for line in startup_lines(config):
            supervisor.log.line("agentcms", line)
        while True:
            supervisor.run_once()


# --- Checks before the start


def check_port(config: ServerConfig) -> None:
    """Raise CannotListen if the web server cannot listen on its host, or if the port is in use."""
    find_listening_address(config.host, config.port, share_port=False)


@contextlib.contextmanager
def data_dir_lock(data: Path) -> Iterator[int]:
    """Lock the data folder during the block. The guard of orphans holds it until the last process has stopped."""
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
    """Wait for the lock of the data folder. Raise CannotStart if another server runs."""
    deadline = time.monotonic() + LOCK_TIMEOUT
    while True:
        with contextlib.suppress(BlockingIOError):
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        holder = os.pread(lock, 32, 0).decode()
        # A holder that no longer runs was killed. Its guard has the lock until it has stopped the other processes.
        if is_running(holder) or time.monotonic() > deadline:
            raise CannotStart(
                f"The data folder {data} is in use by process {holder or 'unknown'}. "
                "Stop that process or use another folder: DATA_DIR=./var2 PORT=8001 make run"
            )
        time.sleep(0.05)


def is_running(process: str) -> bool:
    """Return True if a process with this id exists."""
    try:
        os.kill(int(process), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True


# --- Processes


@contextlib.contextmanager
def start_broker(
    config: ServerConfig, supervisor: Supervisor, variables: Mapping[str, str]
) -> Iterator[dict[str, str]]:
    """Yield the environment variables of the broker. Start the embedded Valkey unless another broker is set."""
    address_file = config.data / "valkey.url"
    if variables.get("REDIS_URL") or variables.get("CELERY_BROKER_URL"):
        address_file.unlink(missing_ok=True)
        yield {}
        return
    remove_stale_socket(environment.read_address_file(address_file))
    # A real server, because the transport of kombu that stores messages in files loses some if it is killed.
    server = Valkey(config.data / "valkey")
    supervisor.orphan_guard.remove_at_end(server.sockets)
    supervisor.orphan_guard.remove_at_end(address_file)
    supervisor.keep_running(server.child(variables))
    deadline = time.monotonic() + VALKEY_TIMEOUT
    while not server.is_ready():
        supervisor.run_once(0.02)
        if supervisor.failures("valkey") or time.monotonic() > deadline:
            raise CannotStart(f"The embedded Valkey did not start. See {server.log}.")
    address_file.write_text(server.address)
    yield {"REDIS_URL": server.address}


def python(*arguments: str) -> list[str]:
    return [sys.executable, *arguments]


def web_process(config: ServerConfig, variables: Mapping[str, str]) -> Child:
    """Return the process of the web server."""
    variables = {**variables, "HOST": config.host, "PORT": str(config.port), "WEB_WORKERS": str(config.workers)}
    # Less than the `stop_timeout` of a child, after which the supervisor kills the whole group.
    return Child("web", python("-m", "agentcms.server.web"), {"WEB_STOP_TIMEOUT": "5", **variables})


def worker_process(variables: Mapping[str, str]) -> Child:
    """Return the process of the Celery worker."""
    # Celery warns if it runs as root, as in most containers. That is safe with JSON messages.
    return Child("worker", python("-W", "ignore:You're running the worker", "-m", "agentcms.server.worker"), variables)


def wait_for_first_page(config: ServerConfig, supervisor: Supervisor, timeout: float) -> bool:
    """Wait until the start page is served. Return False after the timeout; raise CannotStart if the server fails."""
    deadline = time.monotonic() + timeout
    while (status := first_page_status(config)) is None or status >= 500:
        supervisor.run_once(0.05)
        if supervisor.failures("web") >= 3:
            raise CannotStart("The web server stopped three times before it served a page: see above.")
        if time.monotonic() > deadline:
            answer = "no answer" if status is None else f"status {status}"
            supervisor.log.line(
                "agentcms", f"{config.address} is not ready yet ({answer}). Wait a little, then open it."
            )
            return False
    return True


def first_page_status(config: ServerConfig) -> int | None:
    """Return the status of the start page, or None without a response."""
    # A plain socket: an HTTP client library would use 4 MB in this process.
    try:
        with socket.create_connection((config.reachable_host, config.port), timeout=5) as connection:
            connection.sendall(f"GET / HTTP/1.0\r\nHost: {config.reachable_host}\r\n\r\n".encode())
            return int(connection.recv(64).split()[1])
    except (OSError, ValueError, IndexError):
        return None


def startup_lines(config: ServerConfig) -> Iterator[str]:
    """Yield the lines to print once the server is ready."""
    yield f"Agent CMS is at {config.address}"
    for user in demo_users(config.data / "demo_passwords.json"):
        yield f"  sign in as {user['username']} ({user['role']}), password {user['password']}"
    if (config.data / NO_USERS_FILE).exists():
        yield "There are no users yet. Create the first one in another terminal:"
        yield f"  {first_user_command(config)}"
    if os.environ.get("CELERY_BROKER_URL") and not os.environ.get("REDIS_URL"):
        yield NO_SHARED_CACHE
    yield f"Data: {config.data}. Ctrl-C stops everything."


def first_user_command(config: ServerConfig) -> str:
    """Return the command for the first user, with the variables that select the database of this server."""
    variables = {name: os.environ[name] for name in ("DATA_DIR", "DATABASE_URL") if os.environ.get(name)}
    if "DATA_DIR" in variables:
        variables["DATA_DIR"] = str(config.data)
    if "DATABASE_URL" in variables:
        variables["DATABASE_URL"] = "…"  # it has a password, which logs must not show
    return " ".join([*(f"{name}={shlex.quote(value)}" for name, value in variables.items()), FIRST_USER_COMMAND])


def demo_users(path: Path) -> list[dict[str, str]]:
    """Return the users of the demo data with their passwords, or none without demo data."""
    try:
        users: list[dict[str, str]] = json.loads(path.read_text())["users"]
    except (OSError, ValueError, KeyError):
        return []
    return users


if __name__ == "__main__":
    sys.exit(main())
