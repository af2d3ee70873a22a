"""Renderers of JSON responses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils.functional import Promise
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from agentcms.wire.timestamps import format_timestamp


@dataclass(frozen=True, slots=True)
class PreEncodedJSON:
    """Response data that is JSON text already, in UTF-8: `Response(PreEncodedJSON(text.encode()))`."""

    content: bytes


def encode_json(data: object) -> bytes:
    """Return compact JSON in UTF-8. A lone surrogate, which only an error can quote, is written as an escape."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_encode_value)
    return text.encode("utf-8", "backslashreplace")


def _encode_value(value: object) -> str:
    if isinstance(value, datetime):
        return format_timestamp(value)
    if isinstance(value, UUID | Promise):
        return str(value)
    raise TypeError(f"A {type(value).__name__} cannot be encoded as JSON.")


class JSONRenderer(BaseRenderer):
    """A renderer of JSON. It sends `PreEncodedJSON` unchanged and no body where there is no data, as for a 304."""

    media_type = "application/json"
    format = "json"
    # RFC 8259 defines no charset for application/json. DRF would add one to the Content-Type.
    charset = None

    def render(
        self, data: object, accepted_media_type: str | None = None, renderer_context: Mapping[str, Any] | None = None
    ) -> bytes:
        if isinstance(data, PreEncodedJSON):
            return data.content
        return b"" if data is None else encode_json(data)


class Negotiation(DefaultContentNegotiation):
    """The content negotiation of DRF, with a fast path for requests that accept anything or the first renderer."""

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> object:
        first = renderers[0]
        if request.META.get("HTTP_ACCEPT", "*/*") in ("*/*", first.media_type):
            return first, first.media_type
        return super().select_renderer(request, renderers, format_suffix)
