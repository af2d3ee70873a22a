"""Streams to clients that read slowly, or not at all."""

import socket
import threading
import time
from contextlib import suppress

import pytest

from agentcms.gateway import slow_readers
from agentcms.gateway.slow_readers import CHECK_BYTES, ReaderStalled, StreamReader, find_connection

MUCH = b"x" * 20_000_000  # above what the kernel buffers


@pytest.fixture
def connection():
    """Yield both ends of a TCP connection: the server's and the client's."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        server, _ = listener.accept()
        with client, server:
            yield server, client


@pytest.fixture
def sending(connection):
    """Send much from a thread, as the web server does, whatever the client reads."""
    server, _ = connection
    thread = threading.Thread(target=send_much, args=[server])
    thread.start()
    time.sleep(0.2)  # until the buffers of the kernel are full
    yield
    connection[1].close()
    thread.join(10)


def send_much(server: socket.socket) -> None:
    with suppress(OSError):  # cut off
        server.sendall(MUCH)


def reader_of(client: socket.socket) -> StreamReader:
    return StreamReader(client.getsockname())


def read_all(client: socket.socket) -> int:
    """Read until the connection ends. Return the number of bytes."""
    received = 0
    with suppress(ConnectionError):
        while piece := client.recv(1_000_000):
            received += len(piece)
    return received


def test_the_connection_of_a_client_is_found(connection):
    server, client = connection

    with find_connection(client.getsockname()) as copy:
        assert (copy.getsockname(), copy.getpeername()) == (server.getsockname(), client.getsockname())
    assert find_connection(("127.0.0.1", 1)) is None
    assert server.fileno() != -1


def test_small_streams_are_never_checked(connection, monkeypatch):
    monkeypatch.setattr(slow_readers, "find_connection", lambda address: pytest.fail("The connection was looked up."))
    reader = reader_of(connection[1])

    for _ in range(10):
        reader.count(CHECK_BYTES // 10 - 1)


def test_a_stream_waits_until_its_client_reads(connection, sending):
    client = connection[1]
    reader = reader_of(client)
    counted = threading.Event()

    def count() -> None:
        reader.count(CHECK_BYTES)
        counted.set()

    threading.Thread(target=count, daemon=True).start()
    assert not counted.wait(0.5)
    threading.Thread(target=read_all, args=[client], daemon=True).start()
    assert counted.wait(10)


def test_a_client_that_reads_nothing_is_cut_off(connection, sending, settings):
    settings.STREAM_STALL_TIMEOUT = 0.5
    client = connection[1]

    with pytest.raises(ReaderStalled):
        reader_of(client).count(CHECK_BYTES)

    assert read_all(client) < len(MUCH)


def test_a_client_that_reads_slowly_is_not_cut_off(connection, sending, settings):
    settings.STREAM_STALL_TIMEOUT = 1
    client = connection[1]
    is_counted = threading.Event()

    def read_slowly() -> None:
        while not is_counted.is_set():
            client.recv(400_000)
            time.sleep(0.05)

    thread = threading.Thread(target=read_slowly)
    thread.start()
    began = time.monotonic()
    try:
        reader_of(client).count(CHECK_BYTES)
    finally:
        is_counted.set()
        thread.join()

    assert time.monotonic() - began > settings.STREAM_STALL_TIMEOUT


def test_a_client_that_leaves_ends_the_wait(connection, sending):
    client = connection[1]
    threading.Timer(0.3, client.close).start()

    reader_of(client).count(CHECK_BYTES)


def test_a_process_that_stops_does_not_wait(connection, sending, monkeypatch):
    stopping = threading.Event()
    monkeypatch.setattr(slow_readers, "stopping", stopping)
    threading.Timer(0.3, stopping.set).start()

    reader_of(connection[1]).count(CHECK_BYTES)
