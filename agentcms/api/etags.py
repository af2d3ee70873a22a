"""Entity tags of conditional requests."""

from __future__ import annotations

import re

from django.http import HttpResponse
from rest_framework.request import Request

# The mark W/ of a weak tag is ignored: proxies that compress a response make its tag weak.
_ETAG = re.compile(r'(?:W/)?"([^"]*)"')


def named_etags(header: str) -> set[str]:
    """Return the entity tags that a header names, without their quotes."""
    return {*_ETAG.findall(header)}


def allows_change(request: Request, etag: str) -> bool:
    """Return whether `If-Match` allows a change of what has this entity tag. Without the header it does."""
    header = request.META.get("HTTP_IF_MATCH")
    # A blank header is a mismatch: the server passes invalid bytes as blank.
    return header is None or header.strip() == "*" or etag.strip('"') in named_etags(header)


def is_not_modified(request: Request, etag: str) -> bool:
    """Return whether `If-None-Match` names this state."""
    header = request.META.get("HTTP_IF_NONE_MATCH", "").strip()
    return bool(header) and (header == "*" or etag.strip('"') in named_etags(header))


def with_etag(response: HttpResponse, etag: str) -> HttpResponse:
    """Set the entity tag of a response, which no shared cache may store."""
    response.headers["ETag"] = etag
    response.headers["Cache-Control"] = "private, no-cache"
    return response
