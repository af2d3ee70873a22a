"""The start and the stop of a worker while the server of Temporal starts, or does not respond."""

import asyncio
import os
import signal
import socket
import threading
from contextlib import closing
from unittest.mock import Mock

import pytest
from temporalio.api.operatorservice.v1 import DeleteNamespaceRequest
from temporalio.api.workflowservice.v1 import ListNamespacesRequest, RegisterNamespaceRequest
from temporalio.client import Client

from runs_app.engine.runners import messages, temporal
from runs_app.engine.runners.temporal import TemporalRunner
from tests.durable.local_workers import TEMPORAL_NAMESPACE
from tests.durable.test_temporal_encryption import forward
from tests.served import free_port, wait_until

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


@pytest.fixture
def signals(monkeypatch):
    """Return the signals that the process sends, in place of sending them."""
    sent = []
    monkeypatch.setattr(temporal.os, "kill", lambda process, number: sent.append((process, number)))
    return sent


def test_a_worker_that_fails_later_ends_its_process_with_the_reason(
    runner, settings, temporal_server, monkeypatch, signals, caplog
):
    settings.TEMPORAL_ADDRESS, failure = temporal_server, asyncio.Event()

    async def fail_later(worker):
        await failure.wait()
        raise RuntimeError("Activity worker failed")

    monkeypatch.setattr(temporal.Worker, "run", fail_later)
    monkeypatch.setattr(temporal.Worker, "is_running", True)
    runner.start_worker()

    runner.loop.call_soon_threadsafe(failure.set)
    wait_until(lambda: signals, 20, "the end of the worker")

    assert signals == [(os.getpid(), signal.SIGTERM)]
    assert "This worker can no longer execute runs and ends: RuntimeError: Activity worker failed" in caplog.text


@pytest.mark.drill
def test_a_worker_whose_namespace_is_deleted_ends_its_process(runner, settings, temporal_server, signals, caplog):
    """The library notices it when the poll in progress ends, after about a minute."""
    settings.TEMPORAL_ADDRESS, settings.TEMPORAL_NAMESPACE = temporal_server, "short-lived"
    runner.call(create_namespace(temporal_server, "short-lived")).result(60)
    runner.start_worker()

    runner.call(delete_namespace(runner.client, "short-lived")).result(60)
    wait_until(lambda: signals, 240, "the end of the worker")

    assert signals == [(os.getpid(), signal.SIGTERM)]
    assert "This worker can no longer execute runs and ends: " in caplog.text


async def create_namespace(address, name):
    client = await Client.connect(address)
    request = RegisterNamespaceRequest(namespace=name)
    request.workflow_execution_retention_period.FromSeconds(24 * 3600)
    await client.workflow_service.register_namespace(request)
    while name not in await namespaces(client):
        await asyncio.sleep(0.1)


async def namespaces(client):
    answer = await client.workflow_service.list_namespaces(ListNamespacesRequest())
    return [namespace.namespace_info.name for namespace in answer.namespaces]


async def delete_namespace(client, name):
    await client.operator_service.delete_namespace(DeleteNamespaceRequest(namespace=name))


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
