"""Responses of the web server itself, without Django."""

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from errno import ENOSPC
from io import BytesIO
from types import SimpleNamespace

from agentcms.gateway import application
from agentcms.gateway.application import WebApplication
from agentcms.gateway.request_queue import RequestQueue


class Protocol:
    """A connection whose response is recorded."""

    def __aiter__(self):
        return self

    async def __anext__(self):
        return b""

    def response_bytes(self, status, headers, body):
        self.response = (status, dict(headers), json.loads(body))


async def full_disk(self, may_continue):
    raise OSError(ENOSPC, "No space left on device")


def test_a_body_that_cannot_be_stored_is_answered_503(monkeypatch):
    monkeypatch.setattr(application.RequestBody, "read", full_disk)
    exchange = SimpleNamespace(proto=Protocol())
    server = WebApplication(None)

    async def handle():
        server.loop, server.senders = asyncio.get_running_loop(), None
        body = application.RequestBody(exchange.proto, 9, 100, 1, 1000)
        await server.read_and_respond({"PATH_INFO": "/api/stored/agent-import"}, exchange, body)

    asyncio.run(handle())

    status, headers, body = exchange.proto.response
    assert status == 503
    assert headers["Retry-After"] == "1"
    assert body["code"] == "unavailable"


def test_a_prompt_body_that_cannot_be_stored_is_answered_503(monkeypatch):
    def full_disk_at_once(self):
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr(application.RequestBody, "read_in_thread", full_disk_at_once)
    exchange = SimpleNamespace(proto=Protocol())

    WebApplication(None).receive_body({"PATH_INFO": "/api/stored/agents", "CONTENT_LENGTH": "9"}, exchange)

    assert exchange.proto.response[0] == 503
    assert exchange.proto.response[1]["Retry-After"] == "1"


class SilentProtocol(Protocol):
    """A connection that sends no body."""

    async def __anext__(self):
        await asyncio.sleep(60)


def test_the_sender_of_a_slow_body_is_checked_while_all_requests_are_slow():
    released = threading.Event()
    environ = {"PATH_INFO": "/api/stored/agents", "REQUEST_METHOD": "POST", "HTTP_HOST": "127.0.0.1"}
    server = WebApplication(None)
    server.queue = RequestQueue(1)

    async def receive():
        server.loop = asyncio.get_running_loop()
        server.executor, server.senders = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
        server.executor.submit(released.wait, 60)
        body = application.RequestBody(SilentProtocol(), 9, 100, 30, 1000)
        exchange = SimpleNamespace(proto=SilentProtocol())
        await asyncio.wait_for(server.read_and_respond({**environ, "wsgi.input": BytesIO()}, exchange, body), 10)
        return body.is_refused

    try:
        assert asyncio.run(receive())
    finally:
        released.set()
