"""JSON responses."""

from __future__ import annotations

from django.http import HttpResponse

from agentcms.api.etags import with_etag
from agentcms.api.renderers import encode_json


def json_text_response(text: str, status: int = 200, etag: str = "") -> HttpResponse:
    """Return a response for JSON text, with cache headers where an ETag is given."""
    response = HttpResponse(text.encode(), "application/json", status)
    return with_etag(response, etag) if etag else response


def json_response(data: object, status: int = 200) -> HttpResponse:
    return HttpResponse(encode_json(data), "application/json", status)
