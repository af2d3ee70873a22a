"""Content length of chunked requests.

Django and DRF treat a body without a length as empty, so an edit would be lost.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from io import BytesIO, RawIOBase
from typing import Any

from django.conf import settings

# A key in the environ of a chunked body that is too long to buffer: its CONTENT_LENGTH is an upper bound.
LENGTH_IS_UPPER_BOUND = "agentcms.unmeasured"

Environ = dict[str, Any]
Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]


def with_content_length(application: Application) -> Application:
    """Wrap a WSGI application so that it gets chunked bodies with a content length."""

    def wrapper(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ.get("HTTP_TRANSFER_ENCODING") and environ.get("wsgi.input_terminated"):
            set_content_length(environ)
        return application(environ, start_response)

    return wrapper


def set_content_length(environ: Environ) -> None:
    """Set the content length of a chunked body. Buffer a body within the memory limit; stream a longer one."""
    limit: int = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    source = environ["wsgi.input"]
    head = bytearray()
    while len(head) <= limit and (chunk := source.read(limit + 1 - len(head))):
        head += chunk
    if len(head) <= limit:
        environ["wsgi.input"], environ["CONTENT_LENGTH"] = BytesIO(head), str(len(head))
    else:
        environ["wsgi.input"], environ["CONTENT_LENGTH"] = _PrefixedStream(bytes(head), source), str(sys.maxsize)
        environ[LENGTH_IS_UPPER_BOUND] = True


class _PrefixedStream(RawIOBase):
    """A stream of the bytes already read, followed by the rest."""

    def __init__(self, head: bytes, source: Any) -> None:
        self.head = BytesIO(head)
        self.source = source

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self.head.read(size) or self.source.read(size)
