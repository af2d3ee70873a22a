"""API views of observational memory, as the published client calls them."""

from __future__ import annotations

import time

from django.http import HttpResponse
from rest_framework.request import Request

from agentcms.api.parsers import json_object_body
from agentcms.api.query_params import QueryParams
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.db.connections import return_connection
from agentcms.errors import ApiError
from agents_app.api.strict_requests import warning_payloads
from agents_app.configuration.memory.options import ObservationalOptions
from agents_app.models import Agent
from memory_app.api.lookups import (
    NOT_GIVEN,
    BodyFields,
    agent_of_query,
    caller_of,
    get_visible_agent,
    memory_of_query,
    thread_of_query,
    visible_agent_of,
)
from memory_app.api.strict_requests import checking_body
from memory_app.history.threads import get_thread
from memory_app.models import Thread
from memory_app.observational.limits import (
    THREAD_REQUIRED,
    THREAD_REQUIRED_MESSAGE,
    observational_options,
)
from memory_app.observational.records import (
    earlier_generations,
    is_observed_soon,
    observation_record,
    records_of_generations,
)
from runs_app.events.streams import StreamSlot

HISTORY_LIMIT = 5  # records, unless the request says another number
MAX_HISTORY = 100
WAIT_SECONDS = 30.0
POLL_SECONDS = 0.5


class ObservationalMemoryView(JSONView):
    """The observations of a thread, with those of earlier generations."""

    def get(self, request: Request) -> HttpResponse:
        agent = agent_of_query(request)
        with QueryParams(request) as query:
            start, end = query.timestamp("from"), query.timestamp("to")
            offset = query.integer("offset", 0)
            limit = query.integer("limit", HISTORY_LIMIT, 1, MAX_HISTORY)
        thread = thread_of_query(request)
        options = observed_options(request, agent, thread)
        # The texts of a long thread are many: only those of the page are read.
        generations = [*earlier_generations(thread, start, end)[offset : offset + limit]]
        return json_response(
            {
                "record": observation_record(thread, options),
                "history": records_of_generations(thread, generations, options),
            }
        )


class BufferStatusView(JSONView):
    """The observations of a thread after the job that makes them. Wait for it for 30 seconds at most."""

    def post(self, request: Request) -> HttpResponse:
        body = json_object_body(request)
        with checking_body(request, body, "threadId", "resourceId") as names, BodyFields(body) as fields:
            key, resource = fields.thread_key("threadId"), fields.resource()
            agent_id = str(body.get("agentId") or "")
        agent = get_visible_agent(request, agent_id) if agent_id not in NOT_GIVEN else None
        if not key:
            raise ApiError(400, THREAD_REQUIRED_MESSAGE, THREAD_REQUIRED)
        thread = get_thread(caller_of(request), key, resource)
        with StreamSlot(request.user):  # it blocks a thread
            wait_until_observed(thread)
        record = observation_record(thread, observed_options(request, agent, thread))
        return json_response({"record": record} | warning_payloads(names.unknown))


def observed_options(request: Request, agent: Agent | None, thread: Thread) -> ObservationalOptions | None:
    """Return the options of the agent of a request, or of the agent of the thread."""
    return observational_options(memory_of_query(request, agent or visible_agent_of(request, thread)))


def wait_until_observed(thread: Thread) -> None:
    """Wait until no process observes a thread or is going to, for 30 seconds at most."""
    deadline = time.monotonic() + WAIT_SECONDS
    while is_observed_soon(thread) and time.monotonic() < deadline:
        return_connection()
        time.sleep(POLL_SECONDS)
    # Raises Thread.DoesNotExist, which is a 404, if the thread was deleted meanwhile.
    thread.refresh_from_db()
