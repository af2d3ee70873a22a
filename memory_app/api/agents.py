"""API views of the memory of an agent: its configuration and its state."""

from __future__ import annotations

from django.http import HttpResponse
from rest_framework.request import Request

from agentcms.api.query_params import QueryParams
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.wire.json_types import JSONObject, JSONValue
from memory_app.api.lookups import NOT_GIVEN, agent_of_query, memory_of_query, thread_of_query
from memory_app.observational.limits import observational_options
from memory_app.observational.records import config_of, observation_status

DEFAULT_LAST_MESSAGES = 20  # of the registered memory
DEFAULT_LAST_MESSAGES_OF_OPTIONS = 10


class MemoryConfigView(JSONView):
    """The memory of an agent. It is null for an agent without memory."""

    def get(self, request: Request) -> HttpResponse:
        memory = memory_of_query(request, agent_of_query(request))
        if memory is None:
            return json_response({"config": None})
        if isinstance(memory, str):
            config: JSONObject = {"key": memory, "lastMessages": DEFAULT_LAST_MESSAGES}
        else:
            config = {"lastMessages": DEFAULT_LAST_MESSAGES_OF_OPTIONS, **(memory.get("options") or {})}
            if (options := observational_options(memory)) is not None:
                config["observationalMemory"] = config_of(options)
        return json_response({"memoryType": "local", "config": config})


class MemoryStatusView(JSONView):
    """The state of the memory of an agent."""

    def get(self, request: Request) -> HttpResponse:
        memory = memory_of_query(request, agent_of_query(request))
        body = {"result": memory is not None, "memoryType": "local"}
        return json_response({**body, "observationalMemory": status_of(request, memory)})


def status_of(request: Request, memory: JSONValue) -> JSONObject:
    """Return the state of the observations of the thread that a query names, or of none."""
    with QueryParams(request) as query:
        key = query.text("threadId") or ""
    thread = thread_of_query(request) if key not in NOT_GIVEN else None
    return observation_status(thread, observational_options(memory))
