"""Parsers of request bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from agentcms import errors
from agentcms.errors import BadRequest
from agentcms.wire.json_parser import InvalidJSON, parse_strict_json
from agentcms.wire.json_types import JSONObject

TRUNCATED_BODY_MESSAGE = "The body ended before its declared length."


class StrictJSONParser(BaseParser):
    """A parser of JSON bodies up to the size limit; `agentcms.wire.json_parser` has its rules."""

    media_type = "application/json"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        request: Request = (parser_context or {})["request"]
        reject_other_encodings(request)
        body = read_limited_body(request, stream)
        try:
            return parse_strict_json(body)
        except InvalidJSON as error:
            raise BadRequest("request body", error.faults) from None


def reject_other_encodings(request: Request) -> None:
    """Raise UnsupportedMediaType unless the body is uncompressed JSON in UTF-8."""
    # The match of DRF accepts `*/*` and any charset.
    media_type, *parameters = (part.strip().lower() for part in request.content_type.split(";"))
    charsets = [part.partition("=")[2].strip('" ') for part in parameters if part.startswith("charset")]
    encoding = request.META.get("HTTP_CONTENT_ENCODING", "").strip().lower()
    if media_type != "application/json" or set(charsets) - {"utf-8", "utf8"} or encoding not in ("", "identity"):
        raise errors.UnsupportedMediaType()


def read_limited_body(request: Request, stream: IO[bytes]) -> bytes:
    """Return the body. Raise TooLarge by the declared length, or as soon as more than the limit was read."""
    limit: int = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    declared = int(request.META.get("CONTENT_LENGTH") or 0)
    if declared > limit:
        raise errors.TooLarge()
    body = bytearray()
    while len(body) <= limit and (chunk := stream.read(limit + 1 - len(body))):
        body += chunk
    if len(body) > limit:
        raise errors.TooLarge()
    if len(body) < declared:
        raise BadRequest("request body", [("", TRUNCATED_BODY_MESSAGE)])
    return bytes(body)


def json_object_body(request: Request) -> JSONObject:
    """Return the JSON object of the request body; empty for an empty body. Raise BadRequest for other values."""
    if not isinstance(request.data, dict):
        raise BadRequest("request body", [("", "The body must be a JSON object.")])
    return dict(request.data.items())
