"""Responses of a WSGI application, sent over RSGI from a thread."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import ExitStack
from io import BufferedReader
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Any
from wsgiref.util import FileWrapper

from django.conf import settings
from django.core.files import File
from granian.rsgi import HTTPProtocol, ProtocolClosed, ProtocolError

from agentcms.gateway.slow_readers import OPEN_FILES, ReaderStalled, StreamReader
from agentcms.middleware.wsgi_charset import Application, Environ

if TYPE_CHECKING:
    from granian._granian import RSGIHTTPStreamTransport

log = logging.getLogger(__name__)

Headers = list[tuple[str, str]]

# The server opens a file some time after it was asked to send it, and says nothing then.
FILE_OPEN_SECONDS = 30.0


class StartResponse:
    """The callable that receives the status and the headers of a response (PEP 3333)."""

    def __init__(self) -> None:
        self.status = 500
        self.headers: Headers = []

    def __call__(self, status: str, headers: Headers, exc_info: object = None) -> None:
        self.status, self.headers = int(status[:3]), headers


def send_wsgi_response(
    application: Application, environ: Environ, protocol: HTTPProtocol, loop: asyncio.AbstractEventLoop
) -> None:
    """Call the application and send its response. An exception of the application becomes a 500.

    The loop closes a temporary file after the server has opened it.
    """
    # Before the call: behind a proxy, the application replaces REMOTE_ADDR by the address of the client of the proxy.
    start, reader = StartResponse(), StreamReader((environ["REMOTE_ADDR"], int(environ["REMOTE_PORT"])))
    with ExitStack() as stack:
        stack.callback(environ["wsgi.input"].close)
        try:
            response = application(environ, start)
            if (close := getattr(response, "close", None)) is not None:
                stack.callback(close)
            send_response(response, start, protocol, reader)
            if temporary_file_of(response) is not None:
                loop.call_soon_threadsafe(loop.call_later, FILE_OPEN_SECONDS, stack.pop_all().close)
        except (ProtocolClosed, ProtocolError):
            pass  # the client is gone
        except ReaderStalled:
            log.info("A client that read nothing of its stream for %d s was cut off.", settings.STREAM_STALL_TIMEOUT)
        except Exception:
            log.exception("A request failed outside of Django.")
            protocol.response_empty(500, [])


def send_response(
    response: Iterable[bytes], start: StartResponse, protocol: HTTPProtocol, reader: StreamReader
) -> None:
    """Send a response: at once, or in the pieces of a stream. The server itself sends a file."""
    if (path := path_of_file(response)) is not None:
        protocol.response_file(start.status, start.headers, path)
    elif getattr(response, "streaming", False) or isinstance(response, FileWrapper):
        send_stream(response, protocol.response_stream(start.status, start.headers), reader)
    else:
        protocol.response_bytes(start.status, start.headers, b"".join(response))


def send_stream(response: Iterable[bytes], transport: RSGIHTTPStreamTransport, reader: StreamReader) -> None:
    """Send the pieces of a response. If one is missing because of an error, close the connection.

    Otherwise the client would take what it has for the whole response, or wait for the rest for ever: the server keeps
    the response open for as long as the transport exists, and a traceback may refer to it for long.
    """
    pieces = iter(response)
    try:
        while (piece := next(pieces, None)) is not None:
            # The server has taken the piece. The awaitable only holds the error of a closed connection.
            for _ in transport.send_bytes(piece).__await__():
                pass
            reader.count(len(piece))
    except (ProtocolClosed, ProtocolError, ReaderStalled):
        raise
    except Exception:
        log.exception("A response was cut off.")
        reader.cut_off()
    finally:
        del transport


def path_of_file(response: Iterable[bytes]) -> str | None:
    """Return the path of the file that a response consists of, or None."""
    if (temporary := temporary_file_of(response)) is not None:
        # The file has no name. Sent in pieces, all of it would wait in memory for a slow client.
        return f"{OPEN_FILES}/{temporary.fileno()}"
    file = file_of(response)
    is_whole_file = isinstance(file, BufferedReader) and isinstance(file.name, str) and file.tell() == 0
    return str(file.name) if is_whole_file and file is not None else None


def temporary_file_of(response: Iterable[bytes]) -> SpooledTemporaryFile[bytes] | None:
    """Return the temporary file that a response consists of, such as one from a bucket, or None."""
    file = file_of(response)
    is_whole_file = isinstance(file, SpooledTemporaryFile) and file.tell() == 0
    return file if is_whole_file and OPEN_FILES.exists() else None


def file_of(response: Iterable[bytes]) -> Any:
    """Return the file that a response sends, or None."""
    file = response.filelike if isinstance(response, FileWrapper) else None
    # A file of Django's storage is a wrapper.
    return file.file if isinstance(file, File) else file
