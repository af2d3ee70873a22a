"""API views of the memory of an agent: its configuration and its state."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from rest_framework.request import Request

from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agents_app.models import Agent
from memory_app.api.lookups import agent_of_query

NO_OBSERVATIONS = {
    "enabled": False,
    "hasRecord": False,
    "lastObservedAt": None,
    "tokenCount": 0,
    "observationTokenCount": 0,
    "isObserving": False,
    "isReflecting": False,
}
DEFAULT_LAST_MESSAGES = 20  # of the registered memory
DEFAULT_LAST_MESSAGES_OF_OPTIONS = 10


def memory_of(agent: Agent | None) -> Any:
    """Return the memory of the live version of an agent, or None."""
    version = agent.active_version if agent else None
    return version.snapshot.get("memory") if version else None


class MemoryConfigView(JSONView):
    """The memory of an agent. It is null for an agent without memory."""

    def get(self, request: Request) -> HttpResponse:
        memory = memory_of(agent_of_query(request))
        if memory is None:
            return json_response({"config": None})
        if isinstance(memory, str):
            config: dict[str, Any] = {"key": memory, "lastMessages": DEFAULT_LAST_MESSAGES}
        else:
            config = {"lastMessages": DEFAULT_LAST_MESSAGES_OF_OPTIONS, **(memory.get("options") or {})}
        return json_response({"memoryType": "local", "config": config})


class MemoryStatusView(JSONView):
    """The state of the memory of an agent."""

    def get(self, request: Request) -> HttpResponse:
        has_memory = memory_of(agent_of_query(request)) is not None
        body = {"result": has_memory, "memoryType": "local", "observationalMemory": NO_OBSERVATIONS}
        return json_response(body)
