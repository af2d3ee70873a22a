"""A description of an API request, which a client sends."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from typing import Any

from agentcms_client.json_types import JSONObject, JSONValue


@dataclass
class Call:
    """One request."""

    method: str
    path: str
    query: JSONObject = field(default_factory=dict)
    body: JSONValue = None
    headers: dict[str, str] = field(default_factory=dict)
    timeout: float | None = None  # seconds, instead of the client's
    is_file: bool = False  # the response is a file, and not JSON

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
            kwargs["timeout"] = self.timeout
        if isinstance(self.body, bytes):
            kwargs["content"] = self.body
        elif self.body is not None:
            kwargs["json"] = self.body
        return kwargs


def _query_value(value: JSONValue) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value) if isinstance(value, dict) else value
