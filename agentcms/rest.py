"""JSON in, JSON out, and every exception as the one error body."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import singledispatch
from typing import IO, Any
from uuid import UUID

from django.conf import settings
from django.core import exceptions as django
from django.db import DataError, InterfaceError, OperationalError
from django.http import Http404, UnreadablePostError
from django.utils.functional import Promise
from rest_framework import exceptions as drf
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from agentcms import errors
from agentcms.errors import ApiError, BadRequest
from agentcms.logs import describe
from agentcms.strict_json import InvalidJSON, parse
from agentcms.wire import join, to_wire, wire_path, wire_time

logger = logging.getLogger(__name__)

CUT_OFF = "The body ended before its declared length."

# --- In


class StrictJSONParser(BaseParser):
    """A body in plain JSON, read as `strict_json.parse` reads it and never past the size limit."""

    media_type = "application/json"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        request: Request = (parser_context or {})["request"]
        refuse_other_encodings(request)
        body = read_body(request, stream)
        try:
            return parse(body)
        except InvalidJSON as error:
            raise BadRequest("request body", error.faults) from None


def refuse_other_encodings(request: Request) -> None:
    """Take `application/json` in UTF-8 alone: DRF's own match lets `*/*` and any charset pass."""
    kind, *parameters = (part.strip().lower() for part in request.content_type.split(";"))
    charsets = [part.partition("=")[2].strip('" ') for part in parameters if part.startswith("charset")]
    packing = request.META.get("HTTP_CONTENT_ENCODING", "").strip().lower()
    if kind != "application/json" or set(charsets) - {"utf-8", "utf8"} or packing not in ("", "identity"):
        raise errors.UnsupportedMediaType()


def read_body(request: Request, stream: IO[bytes]) -> bytes:
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
        raise BadRequest("request body", [("", CUT_OFF)])
    return bytes(body)


def body_object(request: Request) -> dict[str, Any]:
    """The members of the request's JSON object; an empty body has none."""
    if not isinstance(request.data, dict):
        raise BadRequest("request body", [("", "The body must be a JSON object.")])
    return dict(request.data.items())


# --- Out


@dataclass(frozen=True, slots=True)
class RawJSON:
    """Response data that is JSON text already, in UTF-8: `Response(RawJSON(text.encode()))`."""

    content: bytes


def encode(data: Any) -> bytes:
    """Compact JSON in UTF-8; half of a surrogate pair, which only an error can quote, is written as its escape."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_plain)
    return text.encode("utf-8", "backslashreplace")


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return wire_time(value)
    if isinstance(value, UUID | Promise):
        return str(value)
    raise TypeError(f"A {type(value).__name__} has no form in JSON.")


class JSONRenderer(BaseRenderer):
    """The data as JSON, or the very bytes of a RawJSON; no data is no body, as for a 304."""

    media_type = "application/json"
    format = "json"
    charset = None

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Mapping[str, Any] | None = None
    ) -> bytes:
        if isinstance(data, RawJSON):
            return data.content
        return b"" if data is None else encode(data)


class Negotiation(DefaultContentNegotiation):
    """DRF's own; who takes anything, or what a view answers anyway, needs no reading of the `Accept` header."""

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        first = renderers[0]
        if request.META.get("HTTP_ACCEPT", "*/*") in ("*/*", first.media_type):
            return first, first.media_type
        return super().select_renderer(request, renderers, format_suffix)


# --- Errors


def exception_handler(exception: Exception, context: Mapping[str, Any]) -> Response | None:
    """DRF's hook: the error body of an exception, or None for a bug, which rises."""
    error = api_error(exception)
    if error is None:
        return None
    # Imported late: the module of DRF's views looks up this module's parser and renderer while it loads.
    from rest_framework.views import set_rollback

    set_rollback()
    return Response(error.body, status=error.status, headers=error.headers)


@singledispatch
def api_error(exception: BaseException) -> ApiError | None:
    """What the caller is told of an exception; None for a bug."""
    return None


@api_error.register
def _own(exception: ApiError) -> ApiError:
    return exception


@api_error.register
def _drf(exception: drf.APIException) -> ApiError:
    return ApiError(exception.status_code, sentence(str(exception.detail)), exception.default_code)


@api_error.register(drf.NotAuthenticated)
@api_error.register(drf.AuthenticationFailed)
def _unauthorized(exception: drf.APIException) -> ApiError:
    # Always 401: DRF turns it into 403 where the first authenticator has no challenge.
    challenge = getattr(exception, "auth_header", None)
    return errors.Unauthorized(challenge) if challenge else errors.Unauthorized()


@api_error.register
def _invalid(exception: drf.ValidationError) -> ApiError:
    return BadRequest("request body", _flat(exception.detail, ""))


def _flat(detail: Any, path: str) -> Iterator[tuple[str, str]]:
    """DRF's nested details as issues with wire paths."""
    if isinstance(detail, dict):
        for key, value in detail.items():
            yield from _flat(value, path if key == "non_field_errors" else join(path, to_wire(str(key))))
    elif isinstance(detail, list):
        for index, value in enumerate(detail):
            yield from _flat(value, path if isinstance(value, str) else f"{path}[{index}]")
    else:
        yield path, str(detail)


@api_error.register
def _unreadable(exception: drf.ParseError) -> ApiError:
    return BadRequest("request body", [("", str(exception.detail))])


@api_error.register
def _method(exception: drf.MethodNotAllowed) -> ApiError:
    return ApiError(405, sentence(str(exception.detail)), "method_not_allowed")


@api_error.register
def _accept(exception: drf.NotAcceptable) -> ApiError:
    return ApiError(406, "This address answers in application/json only.", "not_acceptable")


@api_error.register
def _media_type(exception: drf.UnsupportedMediaType) -> ApiError:
    return errors.UnsupportedMediaType()


@api_error.register
def _throttled(exception: drf.Throttled) -> ApiError:
    return errors.TooManyRequests(max(1, math.ceil(getattr(exception, "wait", None) or 1)))


@api_error.register(drf.PermissionDenied)
@api_error.register(django.PermissionDenied)
def _forbidden(exception: Exception) -> ApiError:
    message = str(exception) or "You may not do this."
    return errors.Forbidden(sentence(message), "csrf_failed" if message.startswith("CSRF") else "forbidden")


@api_error.register
def _missing(exception: drf.NotFound) -> ApiError:
    return errors.NotFound(sentence(str(exception.detail)))


@api_error.register(Http404)
@api_error.register(django.ObjectDoesNotExist)
def _nowhere(exception: Exception) -> ApiError:
    # Django's own text names the model, or lists every route.
    return errors.NotFound()


@api_error.register
def _rule(exception: django.ValidationError) -> ApiError:
    """A broken rule: about fields it is a list of issues, a single one about the whole is the sentence itself."""
    if hasattr(exception, "error_dict"):
        by_field = exception.message_dict.items()
        paths = {name: "" if name == django.NON_FIELD_ERRORS else wire_path(name) for name, _ in by_field}
        return BadRequest("request body", [(paths[name], text) for name, texts in by_field for text in texts])
    if len(exception.error_list) == 1:
        return ApiError(400, exception.messages[0], exception.error_list[0].code or "invalid")
    return BadRequest("request body", [("", text) for text in exception.messages])


@api_error.register
def _too_big(exception: django.RequestDataTooBig) -> ApiError:
    return errors.TooLarge()


@api_error.register(django.SuspiciousOperation)
@api_error.register(django.BadRequest)
@api_error.register(UnreadablePostError)
def _bad(exception: Exception) -> ApiError:
    return ApiError(400, "The request cannot be read.", "bad_request")


@api_error.register
def _host(exception: django.DisallowedHost) -> ApiError:
    return ApiError(400, "This host name is not served here.", "bad_host")


# What SQLite says where the admin is asked for a regular expression that is none; PostgreSQL has a DataError for it.
NO_PATTERN = "user-defined function raised exception"


@api_error.register(OperationalError)
@api_error.register(InterfaceError)
def _database(exception: Exception) -> ApiError | None:
    """A lock or connection not to be had in time is a wait; a missing table is a bug."""
    if str(exception) == NO_PATTERN:
        return _unstorable(exception)
    if not _is_passing(exception):
        return None
    logger.warning("The database could not be had in time: %s", describe(exception))
    return errors.Unavailable()


@api_error.register(DataError)
@api_error.register(OverflowError)  # SQLite's word for a number beyond its own
def _unstorable(exception: Exception) -> ApiError:
    """A value that the database does not take, such as a NUL, where nobody looked before it was asked."""
    logger.warning("The database refused a value.", exc_info=exception)
    return ApiError(400, "The request cannot be read.", "bad_request")


def _is_passing(exception: Exception) -> bool:
    # SQLite calls a missing table operational too, so it is asked for its own word; PostgreSQL does not.
    word: str | None = getattr(exception.__cause__, "sqlite_errorname", None)
    passing = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_CANTOPEN", "SQLITE_IOERR", "SQLITE_FULL", "SQLITE_PROTOCOL")
    return word is None or word.startswith(passing)


def sentence(text: str) -> str:
    """A message with its full stop."""
    return text if text.endswith((".", "!", "?")) else f"{text}."
