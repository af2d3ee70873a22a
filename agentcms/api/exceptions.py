"""Conversion of exceptions to API errors."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping
from functools import singledispatch
from typing import Any

from django.conf import settings
from django.core import exceptions as django
from django.db import DatabaseError, DataError, IntegrityError, InterfaceError, OperationalError
from django.http import Http404, UnreadablePostError
from rest_framework import exceptions as drf
from rest_framework.response import Response

from agentcms import errors
from agentcms.errors import ApiError, BadRequest
from agentcms.logs import describe_exception
from agentcms.wire.names import join_path, to_wire, wire_path

log = logging.getLogger(__name__)


def exception_handler(exception: Exception, context: Mapping[str, Any]) -> Response | None:
    """Return the error response of an exception, or None for a bug, which DRF raises again. DRF calls this."""
    error = api_error(exception)
    if error is None:
        return None
    # An import at the top would be circular: rest_framework.views loads the parsers and renderers of the settings.
    from rest_framework.views import set_rollback

    set_rollback()
    return Response(error.body, status=error.status, headers=error.headers)


@singledispatch
def api_error(exception: BaseException) -> ApiError | None:
    """Return the API error for an exception, or None for a bug."""
    return None


@api_error.register
def _from_api_error(exception: ApiError) -> ApiError:
    return exception


@api_error.register
def _from_drf_exception(exception: drf.APIException) -> ApiError:
    return ApiError(exception.status_code, with_full_stop(str(exception.detail)), exception.default_code)


@api_error.register(drf.NotAuthenticated)
@api_error.register(drf.AuthenticationFailed)
def _from_authentication_failure(exception: drf.APIException) -> ApiError:
    # Always 401: DRF answers 403 if the first authenticator sends no WWW-Authenticate header.
    challenge = getattr(exception, "auth_header", None)
    return errors.Unauthorized(challenge) if challenge else errors.Unauthorized()


@api_error.register
def _from_drf_validation_error(exception: drf.ValidationError) -> ApiError:
    return BadRequest("request body", _flatten_details(exception.detail, ""))


def _flatten_details(detail: object, path: str) -> Iterator[tuple[str, str]]:
    """Yield the nested error details of DRF as issues with wire paths."""
    if isinstance(detail, dict):
        for key, value in detail.items():
            yield from _flatten_details(
                value, path if key == "non_field_errors" else join_path(path, to_wire(str(key)))
            )
    elif isinstance(detail, list):
        for index, value in enumerate(detail):
            yield from _flatten_details(value, path if isinstance(value, str) else f"{path}[{index}]")
    else:
        yield path, str(detail)


@api_error.register
def _from_parse_error(exception: drf.ParseError) -> ApiError:
    return BadRequest("request body", [("", str(exception.detail))])


@api_error.register
def _from_method_not_allowed(exception: drf.MethodNotAllowed) -> ApiError:
    return ApiError(405, with_full_stop(str(exception.detail)), "method_not_allowed")


@api_error.register
def _from_not_acceptable(exception: drf.NotAcceptable) -> ApiError:
    return ApiError(406, "This URL returns application/json only.", "not_acceptable")


@api_error.register
def _from_unsupported_media_type(exception: drf.UnsupportedMediaType) -> ApiError:
    return errors.UnsupportedMediaType()


@api_error.register
def _from_throttled(exception: drf.Throttled) -> ApiError:
    # Retry-After has whole seconds. With 0, a client would send the request again at once.
    return errors.TooManyRequests(max(1, math.ceil(getattr(exception, "wait", None) or 1)))


@api_error.register(drf.PermissionDenied)
@api_error.register(django.PermissionDenied)
def _from_permission_denied(exception: Exception) -> ApiError:
    # DRF raises PermissionDenied for a missing CSRF token too, and only its message tells the two apart.
    message = with_full_stop(str(exception) or "You may not do this.")
    return errors.CsrfFailed(message) if message.startswith("CSRF") else errors.Forbidden(message)


@api_error.register
def _from_not_found(exception: drf.NotFound) -> ApiError:
    return errors.NotFound(with_full_stop(str(exception.detail)))


@api_error.register(Http404)
@api_error.register(django.ObjectDoesNotExist)
def _from_missing_object(exception: Exception) -> ApiError:
    # The message of Django names the model or lists all routes.
    return errors.NotFound()


@api_error.register
def _from_validation_error(exception: django.ValidationError) -> ApiError:
    """Convert a ValidationError. Errors of fields become issues; a single error without a field is the message."""
    if hasattr(exception, "error_dict"):
        by_field = exception.message_dict.items()
        paths = {name: "" if name == django.NON_FIELD_ERRORS else wire_path(name) for name, _ in by_field}
        return BadRequest("request body", [(paths[name], text) for name, texts in by_field for text in texts])
    if len(exception.error_list) == 1:
        return ApiError(400, exception.messages[0], exception.error_list[0].code or "invalid")
    return BadRequest("request body", [("", text) for text in exception.messages])


@api_error.register
def _from_too_large_body(exception: django.RequestDataTooBig) -> ApiError:
    return errors.TooLarge()


@api_error.register(django.SuspiciousOperation)
@api_error.register(django.BadRequest)
@api_error.register(UnreadablePostError)
def _from_unreadable_request(exception: Exception) -> ApiError:
    return ApiError(400, "The request cannot be read.", "bad_request")


@api_error.register
def _from_too_many_fields(exception: django.TooManyFieldsSent) -> ApiError:
    limit = settings.DATA_UPLOAD_MAX_NUMBER_FIELDS
    return ApiError(400, f"A form may have at most {limit:,} fields. Choose fewer entries at once.", "too_many_fields")


@api_error.register
def _from_too_many_files(exception: django.TooManyFilesSent) -> ApiError:
    limit = settings.DATA_UPLOAD_MAX_NUMBER_FILES
    return ApiError(400, f"A form may have at most {limit} files. Upload fewer at once.", "too_many_files")


@api_error.register
def _from_disallowed_host(exception: django.DisallowedHost) -> ApiError:
    return ApiError(400, "This host name is not served here.", "bad_host")


# SQLite raises these for an invalid regular expression in a lookup of the admin, for which PostgreSQL raises a
# DataError, and for a searched text of more than 50,000 bytes.
SQLITE_BAD_PATTERNS = ("user-defined function raised exception", "LIKE or GLOB pattern too complex")

# Of a lock, or of a disk that is full, broken or read-only.
TRANSIENT_SQLITE_ERRORS = (
    *("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_CANTOPEN", "SQLITE_IOERR", "SQLITE_FULL", "SQLITE_PROTOCOL"),
    *("SQLITE_READONLY", "SQLITE_PERM"),
)

MISSING_ROW = "23503"  # foreign_key_violation of PostgreSQL
SQLITE_MISSING = "FOREIGN KEY constraint failed"
NOT_UPDATED = "did not affect any rows."  # the end of the message of `save` with `update_fields` or `force_update`


@api_error.register(OperationalError)
@api_error.register(InterfaceError)
def _from_database_error(exception: Exception) -> ApiError | None:
    """Convert a database error: 503 for a lock or connection timeout, None for a bug such as a missing table."""
    if str(exception) in SQLITE_BAD_PATTERNS:
        return _from_rejected_value(exception)
    if not _is_transient(exception):
        return None
    log.warning("The database was not available in time: %s", describe_exception(exception))
    return errors.Unavailable()


@api_error.register
def _from_integrity_error(exception: IntegrityError) -> ApiError | None:
    """Convert the error of a row that refers to one which was deleted at the same moment. None for a bug."""
    is_missing = getattr(exception.__cause__, "sqlstate", None) == MISSING_ROW or str(exception) == SQLITE_MISSING
    return _from_deleted_row(exception) if is_missing else None


@api_error.register
def _from_plain_database_error(exception: DatabaseError) -> ApiError | None:
    """Convert the error of `save` for a row that was deleted at the same moment. None for a bug."""
    # Only this class itself: the errors of the database are of its subclasses.
    is_deleted = type(exception) is DatabaseError and str(exception).endswith(NOT_UPDATED)
    return _from_deleted_row(exception) if is_deleted else None


def _from_deleted_row(exception: Exception) -> ApiError:
    log.warning("A row was deleted while a request used it.", exc_info=exception)
    return errors.Conflict("Something that this request uses was deleted at the same moment. Read it again.")


@api_error.register(DataError)
@api_error.register(OverflowError)  # SQLite raises it for a number beyond 64 bits
def _from_rejected_value(exception: Exception) -> ApiError:
    """Convert the error for a value that the database rejects, such as a NUL character that was not validated."""
    log.warning("The database rejected a value.", exc_info=exception)
    return ApiError(400, "The request cannot be read.", "bad_request")


def _is_transient(exception: Exception) -> bool:
    # SQLite raises OperationalError for a missing table too, so its error name decides. PostgreSQL does not.
    error_name: str | None = getattr(exception.__cause__, "sqlite_errorname", None)
    return error_name is None or error_name.startswith(TRANSIENT_SQLITE_ERRORS)


def with_full_stop(text: str) -> str:
    """Return a message that ends with a full stop or another closing mark."""
    return text if text.endswith((".", "!", "?")) else f"{text}."
