"""Parsing of responses: results, errors and retries, for both clients."""

from __future__ import annotations

import random
import time
from typing import Any

import httpx

from agentcms_client.json_types import JSONObject

MAX_ATTEMPTS = 5
MAX_RETRY_DELAY = 30.0  # seconds
FIRST_WAIT_PAUSE = 0.2  # seconds
MAX_WAIT_PAUSE = 5.0  # seconds
TRANSIENT_STATUSES = {429, 502, 503, 504}


class ApiError(Exception):
    """A response with an error status.

    `code` is the stable code of the API, `issues` the list of problems by field.
    """

    def __init__(self, status: int, body: JSONObject) -> None:
        super().__init__(body.get("error", f"HTTP {status}"))
        self.status = status
        self.code: str = body.get("code", "")
        self.issues: list[dict[str, str]] = body.get("issues", [])


class Stale(ApiError):
    """A 412: somebody changed the agent since it was read."""


def parse_response(response: httpx.Response, attempt: int, *, is_file: bool = False) -> Any:
    """Return the body of a successful response, of a file as bytes. Raise ApiError for any other.

    `attempt` counts from 0. A 404 for a repeated delete is a success: an earlier attempt deleted the object.
    """
    if response.is_success:
        return response.content if is_file else response.json()
    if response.status_code == 404 and response.request.method == "DELETE" and attempt:
        return {"success": True, "message": "An earlier attempt deleted it."}
    try:
        body = response.json()
    except ValueError:
        body = {"error": response.text[:200]}
    raise (Stale if response.status_code == 412 else ApiError)(response.status_code, body)


def retry_delay(response: httpx.Response | None, attempt: int) -> float | None:
    """Return the seconds to wait before the next attempt, or None if there should be no other.

    `response` is None if the connection failed before a response arrived.
    """
    if attempt + 1 >= MAX_ATTEMPTS:
        return None
    if response is not None and response.status_code not in TRANSIENT_STATUSES and not _is_in_progress(response):
        return None
    retry_after = response.headers.get("Retry-After", "") if response is not None else ""
    if retry_after.isdigit():
        return min(float(retry_after), MAX_RETRY_DELAY)
    delay: float = min(0.1 * 2**attempt, MAX_RETRY_DELAY)
    return delay * random.uniform(0.5, 1)  # noqa: S311  not a secret


class WaitPauses:
    """Growing pauses between two looks at a run or a job, until a time limit."""

    def __init__(self, seconds: float | None, waits_for: str = "run") -> None:
        self.waits_for = waits_for
        self.deadline = None if seconds is None else time.monotonic() + seconds
        self.pause = FIRST_WAIT_PAUSE

    def next(self) -> float:
        """Return the seconds to wait. Raise TimeoutError after the limit."""
        if self.deadline is not None and time.monotonic() >= self.deadline:
            raise TimeoutError(f"The {self.waits_for} is not finished yet.")
        pause, self.pause = self.pause, min(self.pause * 1.5, MAX_WAIT_PAUSE)
        return pause


def _is_in_progress(response: httpx.Response) -> bool:
    """Return whether the server is still executing an earlier request with the same idempotency key."""
    return response.status_code == 409 and "Retry-After" in response.headers
