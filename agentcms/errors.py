"""What the API can refuse, each as the one error body. No HTTP library here, so that any layer may raise them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Literal

MAX_ISSUES = 100


class ApiError(Exception):
    """An answer other than success: status, a sentence, a stable code word, and issues as (wire path, message)."""

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
        # A hostile body can hold a fault per byte; the answer stays small.
        self.issues = None if issues is None else list(islice(issues, MAX_ISSUES))
        self.headers = dict(headers or {})

    @property
    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = {"error": self.error, "code": self.code}
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
    """400: a part of the request is wrong, and the issues say where."""

    def __init__(self, part: RequestPart, issues: Iterable[tuple[str, str]]) -> None:
        super().__init__(400, f"Invalid {part}", _PART_CODES[part], issues)


class Unauthorized(ApiError):
    """401: no credentials, or wrong ones; the same answer for both."""

    def __init__(self, challenge: str = 'Bearer realm="agentcms"') -> None:
        super().__init__(401, "Invalid or expired token", "unauthorized", headers={"WWW-Authenticate": challenge})


class Forbidden(ApiError):
    """403: the caller may see it but not do it; the sentence names the role that may."""

    def __init__(self, error: str, code: str = "forbidden") -> None:
        super().__init__(403, error, code)


class NotFound(ApiError):
    """404: it is not there, or not the caller's, which must look the same."""

    def __init__(self, error: str = "There is nothing at this address.") -> None:
        super().__init__(404, error, "not_found")


class Conflict(ApiError):
    """409: the request is right, the present state is against it."""

    def __init__(self, error: str, code: str = "conflict", headers: Mapping[str, str] | None = None) -> None:
        super().__init__(409, error, code, headers=headers)


class PreconditionFailed(ApiError):
    """412: `If-Match` is stale; the answer carries the tag of now."""

    def __init__(self, error: str, etag: str = "") -> None:
        super().__init__(412, error, "precondition_failed", headers={"ETag": etag} if etag else None)


class TooLarge(ApiError):
    """413: the body passes the limit."""

    def __init__(self) -> None:
        super().__init__(413, "Request body too large", "too_large")


class UnsupportedMediaType(ApiError):
    """415: a body that is not plain JSON."""

    def __init__(self, error: str = "Send the request body as application/json in UTF-8.") -> None:
        super().__init__(415, error, "unsupported_media_type")


class Unprocessable(ApiError):
    """422: each part is right, together they are not, such as another body under a used `Idempotency-Key`."""

    def __init__(self, error: str, code: str = "unprocessable") -> None:
        super().__init__(422, error, code)


class TooManyRequests(ApiError):
    """429: a throttle; `seconds` until the next try may pass."""

    def __init__(self, seconds: int) -> None:
        unit = "second" if seconds == 1 else "seconds"
        super().__init__(
            429,
            f"Too many requests. Try again in {seconds} {unit}.",
            "too_many_requests",
            headers={"Retry-After": str(seconds)},
        )


class Unavailable(ApiError):
    """503: a lock or a dependency could not be had in time."""

    def __init__(self, error: str = "The server is busy. Try again shortly.", seconds: int = 1) -> None:
        super().__init__(503, error, "unavailable", headers={"Retry-After": str(seconds)})
