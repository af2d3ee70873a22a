"""Errors of the API. They depend on no HTTP library, so that every layer may raise them."""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Literal

from agentcms.plural import pluralize
from agentcms.wire.json_types import JSONMapping, JSONObject

log = logging.getLogger(__name__)

MAX_ISSUES = 100
# EDQUOT is the quota of the user of this process. The others are those of a disk or a folder that became read-only.
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)
DISK_ERROR_MESSAGE = "The file cannot be stored, because the disk is full or read-only. Try again later."
KEY_IN_PROGRESS_MESSAGE = "A request with this Idempotency-Key is in progress. Repeat it shortly."
KEY_REUSED_MESSAGE = "This Idempotency-Key was used for another request. Send a new key with each new request."


class OutsideError(Exception):
    """A failure of something outside of this application. The message is for users.

    The log needs no traceback of it: it would only show where this application noticed it.
    """


class ApiError(Exception):
    """An error response: a status, a message, a stable code, and issues as (wire path, message)."""

    def __init__(
        self,
        status: int,
        error: str,
        code: str,
        issues: Iterable[tuple[str, str]] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(error)
        self.status = status
        self.error = error
        self.code = code
        # A hostile body can have a fault in every byte; the response stays small.
        self.issues = None if issues is None else list(islice(issues, MAX_ISSUES))
        self.headers = dict(headers or {})

    @property
    def sentence(self) -> str:
        """The message as pages show it. Some messages of the API end without a full stop."""
        # The wire protocol fixes some messages, such as "Invalid request body", and these have none.
        return f"{self.error.rstrip('.')}."

    @property
    def body(self) -> JSONObject:
        body: JSONObject = {"error": self.error, "code": self.code}
        if self.issues is not None:
            body["issues"] = [{"field": field, "message": message} for field, message in self.issues]
        return body


RequestPart = Literal["request body", "query parameters", "path parameters"]
_PART_CODES = {
    "request body": "invalid_body",
    "query parameters": "invalid_query",
    "path parameters": "invalid_path",
}


class BadRequest(ApiError):
    """400: a part of the request is invalid; the issues have the paths."""

    def __init__(self, part: RequestPart, issues: Iterable[tuple[str, str]]) -> None:
        super().__init__(400, f"Invalid {part}", _PART_CODES[part], issues)


class Unauthorized(ApiError):
    """401: no credentials or wrong ones; the response is the same."""

    def __init__(self, challenge: str = 'Bearer realm="agentcms"') -> None:
        super().__init__(401, "Invalid or expired token", "unauthorized", headers={"WWW-Authenticate": challenge})


class Forbidden(ApiError):
    """403: the user may see the resource but not do this; the message names the role that may."""

    def __init__(self, error: str, code: str = "forbidden") -> None:
        super().__init__(403, error, code)


class CsrfFailed(Forbidden):
    """403: a write by the session of a browser without the token that proves where it comes from."""

    def __init__(self, reason: str) -> None:
        advice = "Send the value of the cookie csrftoken as the header X-CSRFToken, or use an API key."
        super().__init__(f"{reason} {advice}", "csrf_failed")


class NotFound(ApiError):
    """404: the resource does not exist or the user may not see it; the response is the same."""

    def __init__(self, error: str = "There is nothing at this address.") -> None:
        super().__init__(404, error, "not_found")


class Conflict(ApiError):
    """409: the request conflicts with the current state."""

    def __init__(self, error: str, code: str = "conflict", headers: Mapping[str, str] | None = None) -> None:
        super().__init__(409, error, code, headers=headers)


class KeyInProgress(Conflict):
    """409: another request with the same `Idempotency-Key` has not been answered yet."""

    def __init__(self) -> None:
        super().__init__(KEY_IN_PROGRESS_MESSAGE, "in_progress", {"Retry-After": "1"})


class PreconditionFailed(ApiError):
    """412: `If-Match` is stale; the response has the current ETag.

    `details` are further members of the body: what changed since, and where both changes touch.
    """

    def __init__(self, error: str, etag: str = "", details: JSONMapping | None = None) -> None:
        super().__init__(412, error, "precondition_failed", headers={"ETag": etag} if etag else None)
        self.details = dict(details or {})

    @property
    def body(self) -> JSONObject:
        return {**super().body, **self.details}


class TooLarge(ApiError):
    """413: the body is larger than the limit."""

    def __init__(self) -> None:
        super().__init__(413, "Request body too large", "too_large")


class UnsupportedMediaType(ApiError):
    """415: the body is not plain JSON in UTF-8."""

    def __init__(self, error: str = "Send the request body uncompressed, as application/json in UTF-8.") -> None:
        super().__init__(415, error, "unsupported_media_type")


class Unprocessable(ApiError):
    """422: the parts do not match, such as another body with a used `Idempotency-Key`."""

    def __init__(self, error: str, code: str = "unprocessable") -> None:
        super().__init__(422, error, code)


class TooManyRequests(ApiError):
    """429: too many requests; the next one may succeed after `seconds`."""

    def __init__(self, seconds: int) -> None:
        super().__init__(
            429,
            f"Too many requests. Try again in {pluralize(seconds, 'second')}.",
            "too_many_requests",
            headers={"Retry-After": str(seconds)},
        )


class Unavailable(ApiError):
    """503: a lock or a dependency was not available in time."""

    def __init__(
        self, error: str = "The server is busy. Try again shortly.", seconds: int = 1, code: str = "unavailable"
    ) -> None:
        super().__init__(503, error, code, headers={"Retry-After": str(seconds)})


@contextmanager
def disk_errors() -> Iterator[None]:
    """Raise Unavailable if a disk is full or read-only."""
    try:
        yield
    except OSError as error:
        if error.errno in DISK_ERRORS:
            log.error("A file cannot be stored: %s.", error.strerror)
            raise Unavailable(DISK_ERROR_MESSAGE) from error
        raise
