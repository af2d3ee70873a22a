"""API views of working memory."""

from __future__ import annotations

from typing import NamedTuple

from django.http import HttpResponse
from rest_framework.request import Request

from agentcms.api.etags import named_etags
from agentcms.api.parsers import json_object_body
from agentcms.api.query_params import QueryParams
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.errors import BadRequest, PreconditionFailed
from agentcms.wire.json_types import JSONObject
from agents_app.api.idempotency import idempotent_if
from agents_app.api.strict_requests import warning_payloads
from agents_app.configuration.memory.options import WorkingMemoryOptions
from agents_app.configuration.schema import ConfigError, validate_fields
from memory_app.api.lookups import (
    BodyFields,
    agent_of_query,
    caller_of,
    memory_of_query,
    resource_of_query,
    visible_agent_of,
)
from memory_app.api.strict_requests import checking_body
from memory_app.history.threads import find_thread, get_own_thread, get_thread, other_resource, thread_not_found
from memory_app.models import Resource, Thread
from memory_app.realms import MemoryCaller
from memory_app.working import values
from memory_app.working.options import working_options
from memory_app.working.values import Holder, Origin, WorkingMemory

EMPTY = WorkingMemory(None, 0)
MEMORY_FORMATS = {"template", "schema"}  # only one of them counts


class RequestedMemory(NamedTuple):
    """The working memory that a request names: its row, None if there is none yet, and the options of the agent."""

    holder: Holder | None
    options: WorkingMemoryOptions
    thread: Thread | None


def get_thread_to_write(request: Request, thread_id: str) -> Thread:
    """Return the thread whose memory a request replaces. Raise ApiError."""
    caller = caller_of(request)
    with BodyFields(json_object_body(request)) as fields:
        resource = fields.resource() or resource_of_query(request)
    if caller.is_bound:
        caller.resource_to_write(resource)
    return get_own_thread(caller, thread_id, resource)


class WorkingMemoryView(JSONView):
    """The working memory of the resource of a thread, or of the thread if the agent says so."""

    def get(self, request: Request, thread_id: str) -> HttpResponse:
        place = find_requested_memory(request, thread_id)
        memory = values.read_memory(place.holder) if place.holder else EMPTY
        schema = place.options.json_schema
        template = {"format": "json" if schema is not None else "markdown", "content": template_of(place.options)}
        body = {
            "workingMemory": memory.text,
            "source": place.options.scope,
            "workingMemoryTemplate": template,
            "threadExists": place.thread is not None,
        }
        return with_revision_etag(json_response(body), memory)

    @idempotent_if(get_thread_to_write)
    def post(self, request: Request, thread_id: str) -> HttpResponse:
        caller_of(request).require_write()
        body = json_object_body(request)
        text = read_memory_text(body)
        with checking_body(request, body, "workingMemory", "resourceId") as names:
            thread = get_thread_to_write(request, thread_id)
        options = options_of(request, thread)
        holder = holder_of(thread, options)
        origin = Origin(user_id=request.user.pk)
        outcome = values.write_text(holder, text, options, origin, expected_revision(request, holder))
        if outcome.has_moved:
            raise PreconditionFailed(values.MEMORY_MOVED_MESSAGE, etag_of(outcome.memory))
        if outcome.issues:
            raise BadRequest("request body", [(issue.field, issue.message) for issue in outcome.issues])
        return with_revision_etag(json_response({"success": True} | warning_payloads(names.unknown)), outcome.memory)


def find_requested_memory(request: Request, key: str) -> RequestedMemory:
    """Return the working memory that a request may read. A thread that does not exist yet has that of its resource."""
    caller, resource = caller_of(request), resource_of_query(request)
    thread = find_thread(caller, key, resource)
    if thread is None:
        if not resource:
            raise thread_not_found(key)
        resource = caller.resource_to_read(resource)
        options = with_requested(request, options_of(request, None))
        holder = Resource.objects.filter(realm=caller.realm, key=resource).first()
        return RequestedMemory(holder if options.scope == "resource" else None, options, None)
    thread = get_thread(caller, key, resource)
    options = with_requested(request, options_of(request, thread))
    if options.scope == "resource":
        reject_foreign_resource(caller, thread)
    return RequestedMemory(holder_of(thread, options), options, thread)


def reject_foreign_resource(caller: MemoryCaller, thread: Thread) -> None:
    """Raise Forbidden for a participant, who reads a thread but not what is known about its resource."""
    if thread.realm != caller.realm:
        raise other_resource(thread.key)


def options_of(request: Request, thread: Thread | None) -> WorkingMemoryOptions:
    """Return the options of the agent of the query, else of the thread's agent, else the defaults."""
    agent = agent_of_query(request) or visible_agent_of(request, thread)
    return working_options(memory_of_query(request, agent)) or WorkingMemoryOptions()


def with_requested(request: Request, options: WorkingMemoryOptions) -> WorkingMemoryOptions:
    """Return options with those of `memoryConfig` in their place, which count for this request. Raise BadRequest."""
    with QueryParams(request) as query:
        config = (query.json_object("memoryConfig") or {}).get("workingMemory")
        if not isinstance(config, dict):
            return options
        given = options.model_dump(by_alias=True, exclude_unset=True)
        if config.keys() & MEMORY_FORMATS:
            given = {name: value for name, value in given.items() if name not in MEMORY_FORMATS}
        try:
            validate_fields(WorkingMemoryOptions, given | config)
        except ConfigError as error:
            for issue in error.issues:
                query.add_fault(f"memoryConfig.workingMemory.{issue.field}".rstrip("."), issue.message)
            return options
    return WorkingMemoryOptions.model_validate(given | config)


def holder_of(thread: Thread, options: WorkingMemoryOptions) -> Holder:
    # Threads that the previous release wrote have no resource.
    return thread if options.scope == "thread" or thread.resource is None else thread.resource


def template_of(options: WorkingMemoryOptions) -> object:
    return options.json_schema if options.json_schema is not None else options.template or ""


def read_memory_text(body: JSONObject) -> str | None:
    """Return the text of a body. None and a blank text clear the memory. Raise BadRequest."""
    text = body.get("workingMemory")
    if "workingMemory" not in body or not (text is None or isinstance(text, str)):
        raise BadRequest("request body", [("workingMemory", "This must be a text, or null to clear it.")])
    return text


def etag_of(memory: WorkingMemory) -> str:
    return f'"w{memory.revision}"'


def with_revision_etag(response: HttpResponse, memory: WorkingMemory) -> HttpResponse:
    response.headers["ETag"] = etag_of(memory)
    response.headers["Cache-Control"] = "private, no-cache"
    return response


def expected_revision(request: Request, holder: Holder) -> int | None:
    """Return the revision that `If-Match` names, or None without the header. Raise PreconditionFailed for another."""
    header = request.META.get("HTTP_IF_MATCH")
    if header is None or header.strip() == "*":
        return None
    # Without a lock: the write compares the revision again under one.
    current = values.read_memory(holder)
    if etag_of(current).strip('"') not in named_etags(header):
        raise PreconditionFailed(values.MEMORY_MOVED_MESSAGE, etag_of(current))
    return current.revision
