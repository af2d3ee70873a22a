"""The address of the MCP server of the demo, which its process and its data share."""

from __future__ import annotations

import socket
from contextlib import closing, suppress
from pathlib import Path

# An address of its own: the demo allows connections to it, and to no other service of this machine.
HOST = "127.0.0.77"
PORT_FILE = "demo_mcp.port"
URL_VARIABLE = "DEMO_MCP_URL"


def demo_url(port: int) -> str:
    return f"http://{HOST}:{port}/mcp"


def choose_port(data: Path) -> int | None:
    """Return a free port, the earlier one if it is free. Return None if this machine does not have the address."""
    file = data / PORT_FILE
    earlier = 0
    with suppress(OSError, ValueError):
        earlier = int(file.read_text())
    port = choose_free_port(earlier) or choose_free_port()
    if port is not None:
        file.write_text(str(port))
    return port


def choose_free_port(preferred: int = 0) -> int | None:
    """Return the preferred port, or any for 0, if it is free at the address."""
    with suppress(OSError, OverflowError), closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((HOST, preferred))
        port: int = probe.getsockname()[1]
        return port
    return None
