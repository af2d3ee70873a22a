"""API views of threads, as the published client calls them."""

from __future__ import annotations

from datetime import datetime

from django.db.models import QuerySet
from django.http import HttpResponse
from django.utils import timezone
from rest_framework.request import Request

from agentcms.api.pagination import page_payload
from agentcms.api.parsers import json_object_body
from agentcms.api.query_params import OrderBy, QueryParams
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.db.column_values import ColumnValues
from agentcms.errors import BadRequest, Forbidden
from agentcms.ids import uuid7
from agentcms.wire.json_types import JSONMapping, JSONObject
from agentcms.wire.timestamps import parse_timestamp
from agents_app.api.idempotency import idempotent_by_reference, referring_response
from agents_app.api.strict_requests import warning_payloads
from agents_app.models import Agent
from memory_app.api.json_columns import containing_json
from memory_app.api.lookups import (
    MAX_TITLE_LENGTH,
    BodyFields,
    agent_of_query,
    caller_of,
    get_changeable_thread,
    get_referred_thread,
    get_requested_thread,
    read_resource,
)
from memory_app.api.representation import thread_body
from memory_app.api.strict_requests import check_parameters, checking_body, find_unknown_in_copy
from memory_app.history.copies import CopiedMessages, copy_thread
from memory_app.history.messages import MAX_THREAD_MESSAGES
from memory_app.history.threads import create_named_thread, transfer_thread
from memory_app.history.wire_messages import place_questions, wire_messages
from memory_app.models import Thread
from memory_app.realms import MemoryCaller
from runs_app.engine import run_ends
from runs_app.memory.thread_deletion import delete_threads
from runs_app.models import AgentRun

THREADS_PER_PAGE = 100
COLUMN_BY_FIELD = {"createdAt": "created_at", "updatedAt": "updated_at"}


def respond_with_thread(request: Request, reference: JSONMapping, **arguments: str) -> HttpResponse:
    """Return the thread that a request has created or moved. Raise NotFound."""
    caller_of(request).require_write()
    return json_response(thread_body(get_referred_thread(request, reference)) | reference["more"])


class ThreadsView(JSONView):
    """List and creation of threads."""

    def get(self, request: Request) -> HttpResponse:
        caller = caller_of(request)
        with QueryParams(request) as query:
            paging = query.paging(THREADS_PER_PAGE)
            order = query.order_by([*COLUMN_BY_FIELD], OrderBy("createdAt"))
            resource = caller.resource_to_read(read_resource(query))
            metadata = query.json_object("metadata") or {}
            unknown = check_parameters(query)
        threads = containing_json(listed_threads(caller, resource), "metadata", metadata)
        # The key decides between equal times, or a thread could be on two pages and another on none.
        ordered = threads.order_by(order.signed(COLUMN_BY_FIELD[order.field]), order.signed("pk"))
        rows = ordered[paging.start : paging.stop]
        bodies = [thread_body(thread) for thread in rows]
        page = page_payload("threads", bodies, threads.count(), paging.page, paging.per_page)
        return json_response(page | warning_payloads(unknown))

    @idempotent_by_reference(respond_with_thread)
    def post(self, request: Request) -> HttpResponse:
        caller = caller_of(request)
        caller.require_write()
        agent, content = agent_of_query(request), json_object_body(request)
        known = ("threadId", "resourceId", "title", "metadata")
        with checking_body(request, content, *known) as names, BodyFields(content) as body:
            resource, key = body.resource(), body.thread_key("threadId")
            title, metadata = body.title(), body.metadata()
        columns = {"title": title or "", "metadata": metadata, **agent_columns_of_new_thread(agent)}
        resource = caller.resource_to_write(resource)
        thread = create_named_thread(caller, key or str(uuid7()), resource, **columns)
        more = warning_payloads(names.unknown)
        return referring_response(thread_body(thread) | more, {"thread": thread.pk, "more": more}, 201)


def agent_columns_of_new_thread(agent: Agent | None) -> ColumnValues:
    """Return the columns of a thread that name its agent."""
    if agent is None:
        return {"agent": None, "agent_key": ""}
    return {"agent": agent, "agent_key": agent.pk, "agent_owner_id": agent.owner_id}


def listed_threads(caller: MemoryCaller, resource: str) -> QuerySet[Thread]:
    """Return the threads of a resource of the caller's realm, or of the whole realm without one."""
    threads = Thread.objects.for_caller(caller).filter(realm=caller.realm, parent=None, experiment_id=None)
    return threads.filter(resource_key=resource) if resource else threads


class ThreadView(JSONView):
    """One thread."""

    def get(self, request: Request, thread_id: str) -> HttpResponse:
        return json_response(thread_body(get_requested_thread(request, thread_id)))

    def patch(self, request: Request, thread_id: str) -> HttpResponse:
        thread, content = get_changeable_thread(request, thread_id), json_object_body(request)
        known = ("title", "metadata", "resourceId")
        with checking_body(request, content, *known) as names, BodyFields(content) as body:
            title, metadata, resource = body.title(), body.metadata(), body.resource()
        if resource and resource != thread.resource_key:
            message = f"Thread {thread_id} belongs to another resource. Move it with the route transfer."
            raise Forbidden(message, "other_resource")
        changes = {"title": title, "metadata": metadata}
        columns: ColumnValues = {name: value for name, value in changes.items() if value is not None}
        columns["updated_at"] = timezone.now()
        # Not save(): a run may append messages meanwhile, and its last number would be lost.
        Thread.objects.filter(pk=thread.pk).update(**columns)
        for name, value in columns.items():  # not read again: it may be deleted meanwhile
            setattr(thread, name, value)
        return json_response(thread_body(thread) | warning_payloads(names.unknown))

    def delete(self, request: Request, thread_id: str) -> HttpResponse:
        thread = get_changeable_thread(request, thread_id)
        # A run outlives its thread, and would go on for nobody.
        for run in AgentRun.objects.unfinished().filter(thread=thread, parent=None):
            run_ends.cancel_run(run.pk)
        delete_threads([thread.pk])
        return json_response({"result": "Thread deleted"})


def respond_with_copy(request: Request, reference: JSONMapping, thread_id: str) -> HttpResponse:
    """Return the copy that a request has created, with the messages that it had then. Raise NotFound."""
    get_changeable_thread(request, thread_id)
    copy = get_referred_thread(request, reference)
    return json_response(copy_body(copy, reference["last"]) | reference["more"])


def copy_body(copy: Thread, last: int) -> JSONObject:
    """Return a copy with its messages up to the number `last`."""
    rows = place_questions(copy.messages.filter(number__lte=last).order_by("number"))
    return {"thread": thread_body(copy), "clonedMessages": wire_messages(copy, rows)}


class CloneView(JSONView):
    """Copy of a thread with its messages."""

    @idempotent_by_reference(respond_with_copy)
    def post(self, request: Request, thread_id: str) -> HttpResponse:
        thread, caller = get_changeable_thread(request, thread_id), caller_of(request)
        content = json_object_body(request)
        known, inside = ("newThreadId", "resourceId", "title", "metadata", "options"), find_unknown_in_copy(content)
        with checking_body(request, content, *known, inside=inside) as names, BodyFields(content) as body:
            key, resource = body.thread_key("newThreadId"), body.resource()
            title, metadata = body.title(), body.metadata()
            chosen = read_copied_messages(body)
        resource = caller.resource_to_write(resource or thread.resource_key)
        clone_title = f"Clone of {thread.title}"[:MAX_TITLE_LENGTH] if thread.title else ""
        columns = {"title": title if title is not None else clone_title, "metadata": metadata}
        copy = copy_thread(caller, thread, key, resource, chosen, **columns)
        last, more = copy.last_number, warning_payloads(names.unknown)
        return referring_response(copy_body(copy, last) | more, {"thread": copy.pk, "last": last, "more": more})


def read_copied_messages(body: BodyFields) -> CopiedMessages:
    """Return the messages that the options of a body choose. Raise BadRequest for invalid options."""
    options = body.body.get("options") or {}
    criteria = options.get("messageFilter") or {} if isinstance(options, dict) else None
    if not isinstance(options, dict) or not isinstance(criteria, dict):
        raise BadRequest("request body", [("options", "This and its messageFilter must be objects.")])
    limit, keys = options.get("messageLimit"), criteria.get("messageIds")
    faults = []
    if limit is not None and not (type(limit) is int and 0 <= limit <= MAX_THREAD_MESSAGES):
        faults.append(("options.messageLimit", f"Give a whole number from 0 to {MAX_THREAD_MESSAGES}."))
    if keys is not None and not (isinstance(keys, list) and all(isinstance(key, str) for key in keys)):
        faults.append(("options.messageFilter.messageIds", "This must be a list of message IDs."))
    start, end = (read_time(criteria, name, faults) for name in ("startDate", "endDate"))
    if faults:
        raise BadRequest("request body", faults)
    return CopiedMessages(limit, start, end, keys)


def read_time(criteria: JSONObject, name: str, faults: list[tuple[str, str]]) -> datetime | None:
    """Return a time of a filter, or None. Add the fault of an invalid one."""
    try:
        return parse_timestamp(criteria[name]) if criteria.get(name) is not None else None
    except (TypeError, ValueError, AttributeError):
        faults.append((f"options.messageFilter.{name}", "Give an ISO 8601 time."))
        return None


class TransferView(JSONView):
    """Transfer of a thread to another resource of the realm."""

    @idempotent_by_reference(respond_with_thread)
    def post(self, request: Request, thread_id: str) -> HttpResponse:
        caller = caller_of(request)
        if caller.is_bound:
            raise Forbidden("An API key for one resource cannot transfer threads. Use a key without a resource.")
        thread, content = get_changeable_thread(request, thread_id), json_object_body(request)
        with checking_body(request, content, "resourceId") as names, BodyFields(content) as body:
            resource = body.resource(required=True)
        moved = transfer_thread(caller, thread, resource)
        more = warning_payloads(names.unknown)
        return referring_response(thread_body(moved) | more, {"thread": moved.pk, "more": more})
