"""The MCP server of the demo, started for tests at its own address of this machine."""

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator

from tests.served import wait_until
from tools_app.demo.address import HOST, choose_free_port, demo_url


@contextlib.contextmanager
def running_shop() -> Iterator[str]:
    """Yield the URL of the server until the end of the block."""
    port = choose_free_port()
    assert port, f"This machine does not have the address {HOST}."
    with subprocess.Popen([sys.executable, "-m", "tools_app.demo.server", HOST, str(port)]) as process:
        try:
            wait_until(lambda: process.poll() is not None or answers(port), 60, "the MCP server")
            yield demo_url(port)
        finally:
            process.kill()


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((HOST, port), timeout=5):
        return True
    return False
