"""Parse request bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from agentcms import errors
from agentcms.errors import BadRequest
from agentcms.wire.parser import InvalidJSON, parse

TRUNCATED_BODY_MESSAGE = "The body ended before its declared length."


class StrictJSONParser(BaseParser):
    """A body in plain JSON, read as `strict_json.parse` reads it and never past the size limit."""

    media_type = "application/json"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        request: Request = (parser_context or {})["request"]
        reject_other_encodings(request)
        body = read_limited_body(request, stream)
        try:
            return parse(body)
        except InvalidJSON as error:
            raise BadRequest("request body", error.faults) from None


def reject_other_encodings(request: Request) -> None:
    """Take `application/json` in UTF-8 alone: DRF's own match lets `*/*` and any charset pass."""
    kind, *parameters = (part.strip().lower() for part in request.content_type.split(";"))
    charsets = [part.partition("=")[2].strip('" ') for part in parameters if part.startswith("charset")]
    packing = request.META.get("HTTP_CONTENT_ENCODING", "").strip().lower()
    if kind != "application/json" or set(charsets) - {"utf-8", "utf8"} or packing not in ("", "identity"):
        raise errors.UnsupportedMediaType()


def read_limited_body(request: Request, stream: IO[bytes]) -> bytes:
    """The body, refused by its declared length, or after one byte too many where that lied."""
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


def json_object_body(request: Request) -> dict[str, Any]:
    """The members of the request's JSON object; an empty body has none."""
    if not isinstance(request.data, dict):
        raise BadRequest("request body", [("", "The body must be a JSON object.")])
    return dict(request.data.items())
