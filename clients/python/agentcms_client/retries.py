"""Retries of calls, and the pauses before the next attempt, for both clients."""

from __future__ import annotations

import random
import time
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from agentcms_client.requests import Call
from agentcms_client.responses import ApiError, Stale, error_body, parse_response

MAX_ATTEMPTS = 5
FIRST_RETRY_DELAY = 0.5  # seconds; all attempts together outlast the restart of a web server
MAX_RETRY_DELAY = 30.0  # seconds
FIRST_WAIT_PAUSE = 0.2  # seconds
MAX_WAIT_PAUSE = 5.0  # seconds
TRANSIENT_STATUSES = {429, 502, 503, 504}
# The server may have executed the request: behind a proxy (502, 504), or when the database was lost at the end (503).
UNCERTAIN_STATUSES = {502, 503, 504}
REFUSED_CODES = {"too_many_streams"}  # of a 503 that the server sends before it does anything
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
USELESS_TO_REPEAT = (httpx.UnsupportedProtocol, httpx.LocalProtocolError)  # an address or a header is invalid


class Attempts:
    """The attempts of a call: the pauses between them, and whether the server may have executed one already."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.failed = 0
        self.may_have_acted = False

    def pause_after_error(self, error: httpx.TransportError) -> float | None:
        """Return the seconds to wait after a lost connection, or None if there should be no other attempt."""
        is_sent = not isinstance(error, NOT_SENT)
        if isinstance(error, USELESS_TO_REPEAT) or (is_sent and not self.call.is_repeatable):
            return None
        return self._note(retry_delay(None, self.failed), may_have_acted=is_sent)

    def pause_after_response(self, response: httpx.Response) -> float | None:
        """Return the seconds to wait after a response, or None if there should be no other attempt."""
        may_have_acted = response.status_code in UNCERTAIN_STATUSES and not _is_refused(response)
        if may_have_acted and not self.call.is_repeatable:
            return None
        return self._note(retry_delay(response, self.failed), may_have_acted=may_have_acted)

    def _note(self, seconds: float | None, *, may_have_acted: bool) -> float | None:
        if seconds is not None:
            self.failed += 1
            self.may_have_acted |= may_have_acted
        return seconds

    def result(self, response: httpx.Response) -> Any:
        """Return the body of the last response. Raise ApiError.

        A 404 for a delete is a success if an earlier attempt may have deleted the object.
        """
        if response.status_code == 404 and self.call.method == "DELETE" and self.may_have_acted:
            return {"success": True, "message": "An earlier attempt deleted it."}
        try:
            return parse_response(response, is_file=self.call.is_file)
        except Stale as stale:
            stale.may_be_own = self.may_have_acted
            raise


def retry_delay(response: httpx.Response | None, attempt: int) -> float | None:
    """Return the seconds to wait before the next attempt, or None if there should be no other.

    `response` is None if the connection failed before a response arrived.
    """
    if attempt + 1 >= MAX_ATTEMPTS:
        return None
    if response is not None and response.status_code not in TRANSIENT_STATUSES and not _is_in_progress(response):
        return None
    requested = _requested_delay(response.headers.get("Retry-After", "")) if response is not None else None
    if requested is not None:
        return min(requested, MAX_RETRY_DELAY)
    delay: float = min(FIRST_RETRY_DELAY * 2**attempt, MAX_RETRY_DELAY)
    # At random, so that clients that failed at the same moment do not return at the same moment.
    return delay * random.uniform(0.5, 1)  # noqa: S311  not a secret


def is_transient(error: ApiError | httpx.TransportError) -> bool:
    """Return whether the server could not be reached, or could not answer for now."""
    if isinstance(error, ApiError):
        return error.status in TRANSIENT_STATUSES
    return not isinstance(error, USELESS_TO_REPEAT)


def _requested_delay(retry_after: str) -> float | None:
    """Return the seconds of a `Retry-After`, which is a number or a time, or None without a valid one."""
    if retry_after.isascii() and retry_after.isdigit():
        return float(retry_after)
    try:
        return max(parsedate_to_datetime(retry_after).timestamp() - time.time(), 0.0)
    except (ValueError, OverflowError):
        return None


def _is_refused(response: httpx.Response) -> bool:
    """Return whether the server says that it has not begun with the request."""
    return response.status_code == 503 and error_body(response).get("code") in REFUSED_CODES


def _is_in_progress(response: httpx.Response) -> bool:
    """Return whether the server is still executing an earlier request with the same idempotency key."""
    return response.status_code == 409 and "Retry-After" in response.headers


class WaitPauses:
    """Growing pauses between two reads of a run or a job, until a time limit."""

    def __init__(self, seconds: float | None, waits_for: str = "run") -> None:
        self.waits_for = waits_for
        self.deadline = None if seconds is None else time.monotonic() + seconds
        self.pause = FIRST_WAIT_PAUSE

    def next(self) -> float:
        """Return the seconds to wait. Raise TimeoutError after the limit."""
        left = MAX_WAIT_PAUSE if self.deadline is None else self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"The {self.waits_for} is not finished yet.")
        pause, self.pause = min(self.pause, left), min(self.pause * 1.5, MAX_WAIT_PAUSE)
        return pause
