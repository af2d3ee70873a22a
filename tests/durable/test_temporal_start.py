"""The start and the stop of a worker while the server of Temporal starts, or does not respond."""

import asyncio
import socket
import threading
from contextlib import closing
from unittest.mock import Mock

import pytest

from runs_app.engine.runners import messages, temporal
from runs_app.engine.runners.temporal import TemporalRunner
from tests.durable.local_workers import TEMPORAL_NAMESPACE
from tests.durable.test_temporal_encryption import forward
from tests.served import free_port

DELAY = 1.5  # seconds until the server accepts connections


def accept_after_delay(port, address, is_closed):
    """Forward the connections to a port to the server, but only after the delay."""
    if is_closed.wait(DELAY):
        return
    with closing(socket.create_server(("127.0.0.1", port))) as listener:
        listener.settimeout(0.2)
        while not is_closed.is_set():
            try:
                forward(listener.accept()[0], address)
            except TimeoutError:
                continue


@pytest.fixture
def runner(settings):
    settings.TEMPORAL_NAMESPACE = TEMPORAL_NAMESPACE
    settings.TEMPORAL_ADDRESS = f"127.0.0.1:{free_port()}"
    runner = TemporalRunner()
    yield runner
    runner.loop.call_soon_threadsafe(runner.loop.stop)


def test_a_worker_waits_for_a_server_that_starts_later(runner, settings, temporal_server):
    is_closed = threading.Event()
    port = int(settings.TEMPORAL_ADDRESS.rpartition(":")[2])
    server = threading.Thread(target=accept_after_delay, args=(port, temporal_server, is_closed))
    server.start()
    try:
        runner.start_worker()
        assert runner.client.namespace == TEMPORAL_NAMESPACE
        runner.call(runner.worker.shutdown()).result(30)
    finally:
        is_closed.set()
        server.join()


def test_a_worker_without_a_server_ends_with_the_reason(runner, monkeypatch):
    monkeypatch.setattr(temporal, "SERVER_TIMEOUT", 1)

    with pytest.raises(RuntimeError, match="Failed client connect"):
        runner.start_worker()


def test_a_worker_without_the_namespace_ends_with_the_reason(runner, settings, temporal_server):
    settings.TEMPORAL_ADDRESS, settings.TEMPORAL_NAMESPACE = temporal_server, "misspelt"

    with pytest.raises(RuntimeError, match="Namespace misspelt was not found"):
        runner.start_worker()


def test_a_worker_stops_while_the_server_hangs(runner, monkeypatch):
    is_over = asyncio.Event()
    monkeypatch.setattr(temporal, "WORKER_STOP_TIMEOUT", 0.2)
    monkeypatch.setattr(messages, "find_engine", lambda: None)  # that of the other tests does not stop
    runner.worker = Mock(shutdown=is_over.wait)
    drained = threading.Thread(target=runner.drain, daemon=True)
    drained.start()
    drained.join(10)

    assert not drained.is_alive()
    runner.loop.call_soon_threadsafe(is_over.set)
    runner.call(asyncio.sleep(0.05)).result(10)
