"""Responses of the web server itself, without Django."""

import asyncio
import json
from errno import ENOSPC
from types import SimpleNamespace

from agentcms.gateway import application
from agentcms.gateway.application import WebApplication


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
        server.loop, server.executor = asyncio.get_running_loop(), None
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
