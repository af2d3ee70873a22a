"""Backpressure for streamed responses: wait while the client has not read what was sent.

The server accepts all pieces of a stream at once and keeps in memory what the connection does not take. Linux tells
how many bytes of a connection are not sent yet (`TCP_INFO`, tcp(7)). On other systems nothing waits.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
import threading
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from django.conf import settings

from agentcms.process.shutdown import on_shutdown

CHECK_BYTES = 256 * 1024  # are sent between two checks, so about as much waits in memory for a client
FIRST_PAUSE, LONGEST_PAUSE = 0.001, 0.1  # seconds
OPEN_FILES = Path("/proc/self/fd")  # of Linux: opening a path in it opens the file again, at its beginning

# Of `struct tcp_info` in linux/tcp.h: offsets of the state, the acknowledged bytes and the bytes not sent yet.
STATE, ACKNOWLEDGED, NOT_SENT = 0, 120, 144
INFO_BYTES = 148
OPEN_STATES = (1, 8)  # ESTABLISHED, and CLOSE_WAIT: the client has ended its side, and still reads

stopping = threading.Event()
on_shutdown(stopping.set)


class ReaderStalled(Exception):
    """The client of a stream has read nothing for `STREAM_STALL_TIMEOUT`. Its connection is closed."""


class SendProgress(NamedTuple):
    """State of a connection that sends."""

    is_open: bool
    acknowledged: int
    not_sent: int


class StreamReader:
    """The client that reads a streamed response."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address
        self.unchecked = 0

    def count(self, size: int) -> None:
        """Note that bytes were sent. Wait if the client has much left to read. Raise ReaderStalled."""
        self.unchecked += size
        if self.unchecked >= CHECK_BYTES:
            self.unchecked = 0
            if (connection := find_connection(self.address)) is not None:
                with closing(connection):
                    wait_until_sent(connection)

    def cut_off(self) -> None:
        """Close the connection."""
        if (connection := find_connection(self.address)) is not None:
            with closing(connection), suppress(OSError):  # it may be closed already
                connection.shutdown(socket.SHUT_RDWR)


def wait_until_sent(connection: socket.socket) -> None:
    """Return when the connection has sent all, or is closed, or this process stops. Raise ReaderStalled."""
    pause, acknowledged, since = FIRST_PAUSE, -1, time.monotonic()
    while (progress := read_progress(connection)).is_open and progress.not_sent and not stopping.is_set():
        if progress.acknowledged != acknowledged:
            acknowledged, since = progress.acknowledged, time.monotonic()
        elif time.monotonic() - since > settings.STREAM_STALL_TIMEOUT:
            # The server then frees what it kept for this client.
            connection.shutdown(socket.SHUT_RDWR)
            raise ReaderStalled
        stopping.wait(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


def read_progress(connection: socket.socket) -> SendProgress:
    """Return what a connection has sent. An old kernel does not report it: all counts as sent."""
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO_BYTES)
    if len(info) < INFO_BYTES:
        return SendProgress(True, 0, 0)
    acknowledged, not_sent = struct.unpack_from("=Q", info, ACKNOWLEDGED), struct.unpack_from("=I", info, NOT_SENT)
    return SendProgress(info[STATE] in OPEN_STATES, acknowledged[0], not_sent[0])


def find_connection(address: tuple[str, int]) -> socket.socket | None:
    """Return a copy of the socket of this process that is connected to an address, or None. The caller closes it."""
    if not (hasattr(socket, "TCP_INFO") and OPEN_FILES.exists()):
        return None
    # The server does not say which socket a response is sent on. The address of the client is unique among them.
    for name in os.listdir(OPEN_FILES):
        if (connection := copy_socket(int(name))) is not None:
            if peer_of(connection) == address:
                return connection
            connection.close()
    return None


def copy_socket(descriptor: int) -> socket.socket | None:
    """Return a copy of the socket behind a file descriptor, or None if it is something else or closed meanwhile."""
    try:
        # A copy: closing a Python socket closes its descriptor, which belongs to the server.
        return socket.socket(fileno=os.dup(descriptor)) if stat.S_ISSOCK(os.fstat(descriptor).st_mode) else None
    except OSError:
        return None


def peer_of(connection: socket.socket) -> tuple[str, int] | None:
    """Return the address that a TCP socket is connected to, or None."""
    try:
        peer = connection.getpeername()
    except OSError:
        return None
    return peer[:2] if isinstance(peer, tuple) else None
