"""Responses of Django as they are sent."""

import asyncio
import socket
import weakref
from io import BytesIO
from pathlib import Path
from tempfile import SpooledTemporaryFile
from wsgiref.util import FileWrapper

import pytest
from django.core.files.base import File

from agentcms.gateway import responses, slow_readers
from agentcms.gateway.responses import send_wsgi_response

CONTENT = b"a line of an export\n" * 100


class Protocol:
    """A connection that sends files by their path, as granian does, and streams from memory."""

    def response_file(self, status, headers, path):
        self.status, self.path = status, Path(path)


@pytest.fixture
def downloaded():
    """Return a file as a bucket's storage opens it: a temporary one without a name."""
    with SpooledTemporaryFile(10) as file:
        file.write(CONTENT)
        file.seek(0)
        yield File(file)


def application(file):
    def respond_with_file(environ, start_response):
        start_response("200 OK", [])
        return FileWrapper(file)

    return respond_with_file


def test_the_file_of_a_bucket_is_sent_from_disk(downloaded, monkeypatch):
    monkeypatch.setattr(responses, "FILE_OPEN_SECONDS", 0.1)
    protocol = Protocol()

    async def receive():
        environ = {"wsgi.input": BytesIO(), "REMOTE_ADDR": "127.0.0.1", "REMOTE_PORT": "50000"}
        send_wsgi_response(application(downloaded), environ, protocol, asyncio.get_running_loop())
        with protocol.path.open("rb") as opened_later:
            await asyncio.sleep(0.3)
            return opened_later.read()

    assert asyncio.run(receive()) == CONTENT
    assert protocol.status == 200
    assert downloaded.file.closed


class Transport:
    """The stream of a response, which the server ends when nothing refers to it any more."""

    def __init__(self, sent):
        self.sent = sent

    async def send_bytes(self, piece):
        self.sent.append(piece)


class StreamProtocol:
    """A connection whose response is streamed."""

    def __init__(self):
        self.sent = []

    def response_stream(self, status, headers):
        transport = Transport(self.sent)
        self.transport = weakref.ref(transport)
        return transport


class FailingStream:
    """A stream whose error refers to its traceback, as those of the database do."""

    streaming = True

    def __iter__(self):
        yield b"one"
        lose_connection()


def lose_connection():
    error = ValueError("no connection")
    raise error


def test_a_stream_that_fails_is_cut_off(monkeypatch, caplog):
    """The client would else wait for the rest, or take what it has for all."""
    protocol, ours, theirs = StreamProtocol(), *socket.socketpair()
    monkeypatch.setattr(slow_readers, "find_connection", lambda address: ours.dup())
    environ = {"wsgi.input": BytesIO(), "REMOTE_ADDR": "127.0.0.1", "REMOTE_PORT": "50000"}

    def failing_application(environ, start_response):
        start_response("200 OK", [])
        return FailingStream()

    send_wsgi_response(failing_application, environ, protocol, None)

    assert protocol.sent == [b"one"]
    assert protocol.transport() is None
    theirs.settimeout(5)
    assert theirs.recv(1) == b""
    assert "A response was cut off." in caplog.messages
    ours.close()
    theirs.close()
