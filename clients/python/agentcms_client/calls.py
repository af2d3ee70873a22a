"""Calls before they are sent, and what their answers mean: all that does not depend on waiting."""

from __future__ import annotations

import json
import random
import uuid
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx

ATTEMPTS = 5
LONGEST_WAIT = 30.0  # seconds
PASSING = {429, 502, 503, 504}


class ApiError(Exception):
    """An answer other than success."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        super().__init__(body.get("error", f"HTTP {status}"))
        self.status = status
        self.code: str = body.get("code", "")
        self.issues: list[dict[str, str]] = body.get("issues", [])


class Stale(ApiError):
    """Somebody changed the agent since it was read."""


@dataclass
class Call:
    """One request."""

    method: str
    path: str
    query: dict[str, Any] = field(default_factory=dict)
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.query = {name: _written(value) for name, value in self.query.items() if value is not None}
        if self.method == "POST":  # so that a repeat after a lost answer does nothing again
            self.headers.setdefault("Idempotency-Key", str(uuid.uuid4()))

    def arguments(self) -> dict[str, Any]:
        """What httpx takes."""
        sent: dict[str, Any] = {"method": self.method, "url": self.path, "params": self.query, "headers": self.headers}
        if isinstance(self.body, bytes):
            sent["content"] = self.body
        elif self.body is not None:
            sent["json"] = self.body
        return sent


def _written(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value) if isinstance(value, dict) else value


def agent_path(agent_id: str, *rest: str) -> str:
    return "/".join(["/api/stored/agents", quote(agent_id, safe=""), *(quote(part, safe="") for part in rest)])


def read(response: httpx.Response, attempt: int) -> Any:
    """The body of a success; a delete that is repeated and finds nothing has succeeded before. Raises ApiError."""
    if response.is_success:
        return response.json()
    if response.status_code == 404 and response.request.method == "DELETE" and attempt:
        return {"success": True, "message": "It was deleted by an earlier try."}
    try:
        body = response.json()
    except ValueError:
        body = {"error": response.text[:200]}
    raise (Stale if response.status_code == 412 else ApiError)(response.status_code, body)


def wait_for(response: httpx.Response | None, attempt: int) -> float | None:
    """How long to wait before the next try, or None where a try would change nothing; no response is a lost one."""
    if attempt + 1 >= ATTEMPTS:
        return None
    if response is not None and response.status_code not in PASSING and not _in_progress(response):
        return None
    asked = response.headers.get("Retry-After", "") if response is not None else ""
    if asked.isdigit():
        return min(float(asked), LONGEST_WAIT)
    return min(0.1 * 2**attempt, LONGEST_WAIT) * random.uniform(0.5, 1)  # noqa: S311  not a secret


def _in_progress(response: httpx.Response) -> bool:
    return response.status_code == 409 and "Retry-After" in response.headers
