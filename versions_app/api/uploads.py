"""Uploads of files in the body of a request."""

from __future__ import annotations

import hashlib
from typing import IO, Any

from django.conf import settings
from rest_framework.request import Request

from agentcms.api.parsers import TRUNCATED_BODY_MESSAGE
from agentcms.errors import ApiError, BadRequest, TooLarge

CHUNK_SIZE = 1 << 20
MAX_FILE_NAME_LENGTH = 255


def declared_length(request: Request) -> int:
    """Return the length of the body in bytes as its header says, or 0 without one."""
    return int(request.META.get("CONTENT_LENGTH") or 0)


def receive_body(request: Request, file: IO[bytes]) -> tuple[int, str]:
    """Write the body to a file. Return its size and its SHA-256."""
    declared = declared_length(request)
    if declared > settings.IMPORT_MAX_BYTES:
        raise TooLarge
    digest, size = hashlib.sha256(), 0
    # Not from the request of DRF, which would parse the body.
    source: Any = request._request
    while chunk := source.read(CHUNK_SIZE):
        size += len(chunk)
        if size > settings.IMPORT_MAX_BYTES:
            raise TooLarge
        digest.update(chunk)
        file.write(chunk)
    if not size:
        raise ApiError(400, "Send at least one record.", "invalid_body")
    # The connection broke, and what came is a part of a file.
    if size < declared:
        raise BadRequest("request body", [("", TRUNCATED_BODY_MESSAGE)])
    return size, digest.hexdigest()
