"""The request of a call: its method, path, body and idempotency key."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx

from agentcms_client.json_types import JSONObject, JSONValue

CONNECT_TIMEOUT = 10.0  # seconds, also of calls whose response may take long
# Longer than the server waits for a lock, and for an earlier request with the same idempotency key.
DEFAULT_TIMEOUT = httpx.Timeout(30.0, connect=CONNECT_TIMEOUT)


def joined_path(*parts: str) -> str:
    """Return the parts of a path, percent-encoded, with slashes between them."""
    return "/".join(quote(part, safe="") for part in parts)


@dataclass
class Call:
    """One request.

    One that is not repeatable is not sent again if the server may have executed it.
    """

    method: str
    path: str
    query: JSONObject = field(default_factory=dict)
    body: JSONValue = None
    headers: dict[str, str] = field(default_factory=dict)
    timeout: float | None = None  # seconds, instead of the client's
    is_file: bool = False  # the response is a file, and not JSON
    is_repeatable: bool = True

    def __post_init__(self) -> None:
        self.query = {name: _query_value(value) for name, value in self.query.items() if value is not None}
        # The server executes a POST once per key, so that a retry after a lost response has no second effect.
        if self.method == "POST":
            self.headers.setdefault("Idempotency-Key", str(uuid.uuid4()))

    def request_kwargs(self) -> JSONObject:
        """Return the arguments for `httpx.Client.request`."""
        kwargs: dict[str, Any] = {
            "method": self.method,
            "url": self.path,
            "params": self.query,
            "headers": self.headers,
        }
        if self.timeout is not None:
            kwargs["timeout"] = httpx.Timeout(self.timeout, connect=CONNECT_TIMEOUT)
        if isinstance(self.body, bytes):
            kwargs["content"] = self.body
        elif self.body is not None:
            kwargs["json"] = self.body
        return kwargs


def _query_value(value: JSONValue) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value) if isinstance(value, dict) else value
