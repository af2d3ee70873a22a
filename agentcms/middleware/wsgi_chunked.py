"""Give a chunked request a length: Django and DRF take a body without one for empty, and an edit would be lost."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from io import BytesIO, RawIOBase
from typing import Any

from django.conf import settings

# In the environ of a body longer than fits in memory: its CONTENT_LENGTH is a bound, not a length.
LENGTH_IS_UPPER_BOUND = "agentcms.unmeasured"

Environ = dict[str, Any]
Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]


def with_content_length(application: Application) -> Application:
    """Wrap a WSGI application so that a chunked body reaches it as one with a length."""

    def wrapper(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ.get("HTTP_TRANSFER_ENCODING") and environ.get("wsgi.input_terminated"):
            set_content_length(environ)
        return application(environ, start_response)

    return wrapper


def set_content_length(environ: Environ) -> None:
    """Read a body that fits in memory and note its length; a longer one keeps streaming behind what was read."""
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
    """What was read, then what follows it."""

    def __init__(self, head: bytes, source: Any) -> None:
        self.head = BytesIO(head)
        self.source = source

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self.head.read(size) or self.source.read(size)
