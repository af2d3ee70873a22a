"""A client of the API for tests in the same process."""

import json
from typing import Any
from urllib.parse import quote

from django.test import Client

AGENTS = "/api/stored/agents"
MODEL = {"provider": "demo", "name": "echo"}


class Caller:
    """A client with an API key. Every response must be JSON, except the empty body of a 304."""

    def __init__(self, key: str = "") -> None:
        self.authorization = f"Bearer {key}" if key else ""
        self.client = Client(headers={"Authorization": self.authorization} if key else {})

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        answer = self.client.generic(
            method,
            path,
            content,
            content_type="application/json",
            headers={name.replace("_", "-"): value for name, value in headers.items()},
        )
        answer.body = json.loads(answer.content) if answer.content else None
        assert answer.body is not None or answer.status_code == 304
        return answer

    def get(self, path: str, **headers: str) -> Any:
        return self.call("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.call("POST", path, body, **headers)

    def patch(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.call("PATCH", path, body, **headers)

    def delete(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.call("DELETE", path, body, **headers)

    def create(self, agent_id: str = "concierge", **fields: Any) -> Any:
        body = {"id": agent_id, "name": "Concierge", "instructions": "Greet guests.", "model": MODEL, **fields}
        return self.post(AGENTS, body)


def agent_path(agent_id: str = "concierge", *rest: str) -> str:
    return "/".join((AGENTS, quote(agent_id, safe=""), *rest))


def version_path(version_id: str, *rest: str, agent_id: str = "concierge") -> str:
    return agent_path(agent_id, "versions", version_id, *rest)
