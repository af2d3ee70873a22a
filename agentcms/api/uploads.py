"""Files that API views receive, as the body of a request or in a form."""

from __future__ import annotations

import hashlib
from typing import IO, Any

from django.conf import settings
from django.http import HttpResponseBase
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request

from agentcms.api.parsers import TRUNCATED_BODY_MESSAGE, StrictJSONParser
from agentcms.api.views import JSONView
from agentcms.errors import ApiError, BadRequest, TooLarge
from agentcms.web.uploads import SizeLimitedUploadHandler

CHUNK_SIZE = 1 << 20
MAX_FILE_NAME_LENGTH = 255


class UploadView(JSONView):
    """An API view that writes a file of a form to disk, up to the size limit of files."""

    parser_classes = (StrictJSONParser, MultiPartParser)

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> HttpResponseBase:
        # Before authentication, which reads the form for the CSRF token of a session.
        handler = SizeLimitedUploadHandler(request)
        request.upload_handlers = [handler]
        try:
            return super().dispatch(request, *args, **kwargs)
        finally:
            handler.close_file()


def declared_size(request: Request) -> int:
    """Return the length of the body in bytes as its header says, or 0 without one."""
    return int(request.META.get("CONTENT_LENGTH") or 0)


def receive_body(request: Request, file: IO[bytes]) -> tuple[int, str]:
    """Write the body to a file. Return its size and its SHA-256."""
    declared = declared_size(request)
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
