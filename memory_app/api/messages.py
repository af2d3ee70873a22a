"""API views of messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet
from django.http import HttpResponse
from rest_framework.request import Request

from agentcms.api.pagination import PageSize, in_parts, page_payload, text_length
from agentcms.api.parsers import json_object_body
from agentcms.api.query_params import OrderBy, QueryParams
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.errors import BadRequest, Conflict, Forbidden, NotFound
from agentcms.plural import pluralize
from agentcms.wire.json_parser import InvalidJSON, parse_strict_json
from agentcms.wire.json_types import JSONMapping, JSONObject, JSONValue
from agentcms.wire.validation import NOT_A_TEXT_MESSAGE
from agents_app.api.idempotency import idempotent_by_reference, idempotent_if, referring_response
from agents_app.api.strict_requests import warning_payloads
from agents_app.configuration.schema import Issue, collecting_issues
from memory_app.api.lookups import NOT_GIVEN, caller_of, get_requested_thread, read_resource
from memory_app.api.message_filter import filtered_heads, without_reminders
from memory_app.api.strict_requests import check_parameters, checking_body
from memory_app.history.locks import lock_threads
from memory_app.history.message_data import derive_fields
from memory_app.history.messages import (
    Author,
    NewMessage,
    append_messages,
    delete_messages,
    known_message_keys,
    reject_full_thread,
)
from memory_app.history.threads import get_thread, is_thread_key, thread_not_found
from memory_app.history.wire_messages import (
    WireMessage,
    parse_wire_message,
    place_questions,
    ui_messages,
    wire_messages,
)
from memory_app.models import Message, Thread
from memory_app.observational.jobs import observe_if_enabled
from memory_app.realms import MemoryCaller
from memory_app.recall.indexing import index_if_recalled

MESSAGES_PER_PAGE = 40
MAX_SAVED = 1000  # messages of a request
MAX_INCLUDED = 100
MAX_NEIGHBOURS = 100


class MessagesView(JSONView):
    """The messages of a thread. Without an order, the newest page, oldest first."""

    def get(self, request: Request, thread_id: str) -> HttpResponse:
        thread = get_requested_thread(request, thread_id)
        with QueryParams(request) as query:
            paging = query.paging(MESSAGES_PER_PAGE)
            # Clients also write the order as `orderBy[field]` and `orderBy[direction]`.
            is_ordered = "orderBy" in query.values or any(name.startswith("orderBy[") for name in query.values)
            order = query.order_by(["createdAt"], OrderBy("createdAt"))
            criteria = query.json_object("filter") or {}
            included = read_included(query)
            has_reminders = query.text("includeSystemReminders") == "true"
            unknown = check_parameters(query)
        heads = filtered_heads(thread, criteria)
        if not has_reminders:
            heads = without_reminders(heads)
        ascending = is_ordered and order.direction == "ASC"
        page = heads.order_by("number" if ascending else "-number")[paging.start : paging.stop]
        # The numbers alone first: messages may be long, and are then read in parts up to a limit.
        numbers = [*page.values_list("number", flat=True)]
        size = PageSize()
        messages = messages_at(thread, sorted(numbers), size)
        messages = with_included(caller_of(request), thread, messages, included, size)
        if is_ordered and not ascending:
            messages.reverse()
        body = page_payload("messages", messages, heads.count(), paging.page, paging.per_page)
        return json_response(body | {"uiMessages": ui_messages(messages)} | warning_payloads(unknown))


def messages_at(thread: Thread, numbers: list[int], size: PageSize) -> list[WireMessage]:
    """Return the messages that begin at these numbers, which are in order. Raise BadRequest for too large a page."""
    rows: list[Message] = []
    for part in in_parts(numbers):
        added = [*thread.messages.filter(head_number__in=part).order_by("number")]
        size.add(sum(text_length([row.data, row.attributes]) for row in added))
        rows += added
    # All together: a question and the signals before which it comes may be in two parts.
    return wire_messages(thread, place_questions(rows))


def read_included(query: QueryParams) -> list[JSONObject]:
    """Return the messages that the parameter `include` asks for in addition to the page."""
    text = query.text("include")
    if text is None:
        return []
    try:
        value = parse_strict_json(text.encode())
    except InvalidJSON:
        value = None
    if not isinstance(value, list) or len(value) > MAX_INCLUDED or not all(map(is_included, value)):
        query.add_fault("include", f"Give a JSON list of at most {MAX_INCLUDED} objects with the id of a message.")
        return []
    return value


def is_included(item: object) -> bool:
    if not isinstance(item, dict) or not isinstance(item.get("id"), str):
        return False
    counts = [item.get(name, 0) for name in ("withPreviousMessages", "withNextMessages")]
    # Not `isinstance`: a boolean is an integer in Python.
    return all(type(count) is int and 0 <= count <= MAX_NEIGHBOURS for count in counts)


def with_included(
    caller: MemoryCaller,
    thread: Thread,
    messages: list[WireMessage],
    included: list[JSONObject],
    size: PageSize,
) -> list[WireMessage]:
    """Return messages with further ones and their neighbours, of this thread or of others of the resource.

    The oldest come first.
    """
    for item in included:
        source = thread
        if item.get("threadId") not in (None, thread.key):
            source = get_thread(caller, str(item["threadId"]), thread.resource_key)
        heads = source.messages.filter(head_number=F("number"))
        number = heads.filter(key=item["id"]).values_list("number", flat=True).first()
        if number is None:
            continue
        before, after = item.get("withPreviousMessages", 0), item.get("withNextMessages", 0)
        earlier, later = heads.filter(number__lte=number), heads.filter(number__gt=number)
        numbers = [*earlier.order_by("-number").values_list("number", flat=True)[: before + 1]]
        numbers += later.order_by("number").values_list("number", flat=True)[:after]
        known = {message["id"] for message in messages}
        messages += [message for message in messages_at(source, sorted(numbers), size) if message["id"] not in known]
    # By time: messages of several threads have no common numbers.
    return sorted(messages, key=lambda message: message["createdAt"]) if included else messages


def respond_with_saved(request: Request, reference: JSONMapping) -> HttpResponse:
    """Return the messages that a request has saved. Raise NotFound if one was deleted."""
    caller = caller_of(request)
    caller.require_write()
    threads = writable_threads(caller, read_message_list(json_object_body(request)))
    places = [*zip(threads, reference["messages"], strict=True)]
    stored: dict[tuple[Thread, str], list[Message]] = {}
    for thread in {*threads}:
        for keys in in_parts([key for place, key in places if place == thread]):
            stored |= {(thread, key): rows for key, rows in stored_rows(thread, keys).items()}
    if missing := [key for thread, key in places if (thread, key) not in stored]:
        raise NotFound(f"Message with id {missing[0]} not found")
    saved = [body for thread, key in places for body in wire_messages(thread, stored[thread, key])]
    return json_response({"messages": saved} | reference["more"])


class SaveMessagesView(JSONView):
    """Storage of messages that a client has."""

    @idempotent_by_reference(respond_with_saved)
    def post(self, request: Request) -> HttpResponse:
        caller = caller_of(request)
        caller.require_write()
        body = json_object_body(request)
        with checking_body(request, body, "messages") as names:
            items = read_message_list(body)
            parsed = parse_message_rows(items)
        saved: list[WireMessage] = []
        author = Author(request.user.pk, request.user.get_username())
        with transaction.atomic():
            threads = writable_threads(caller, items)
            locked = lock_threads({thread.pk for thread in threads})
            # Only consecutive messages of a thread together, so that the response has the order of the request.
            for thread, group in groupby(zip(threads, parsed, strict=True), itemgetter(0)):
                if thread.pk not in locked:
                    raise thread_not_found(thread.key)  # it was deleted meanwhile
                saved += save_messages(locked[thread.pk], [rows for _, rows in group], author)
            for thread in locked.values():
                index_if_recalled(thread)
                observe_if_enabled(thread)
        more = warning_payloads(names.unknown)
        reference = {"messages": [message["id"] for message in saved], "more": more}
        return referring_response({"messages": saved} | more, reference)


def read_message_list(body: JSONObject) -> list[JSONObject]:
    """Return the messages of a body. Raise BadRequest."""
    items = body.get("messages")
    if not isinstance(items, list) or not 0 < len(items) <= MAX_SAVED:
        raise BadRequest("request body", [("messages", f"Send a list of 1 to {MAX_SAVED:,} messages.")])
    return items


def parse_message_rows(items: list[JSONValue]) -> list[list[NewMessage]]:
    """Return the rows of each message. Raise BadRequest with the issues of all."""
    issues: list[Issue] = []
    parsed: list[list[NewMessage]] = []
    for index, item in enumerate(items):
        path = f"messages[{index}]"
        with collecting_issues(issues):
            parsed.append(parse_wire_message(item, path))
        if isinstance(item, dict) and not is_thread_key(item.get("threadId")):
            issues.append(Issue(f"{path}.threadId", "Send the ID of an existing thread."))
        if isinstance(item, dict) and not isinstance(item.get("resourceId", ""), str):
            issues.append(Issue(f"{path}.resourceId", NOT_A_TEXT_MESSAGE))
    if issues:
        raise BadRequest("request body", [(issue.field, issue.message) for issue in issues])
    return parsed


def writable_threads(caller: MemoryCaller, items: Sequence[JSONObject]) -> list[Thread]:
    """Return the thread of each message, which is looked up once."""
    places = [(item["threadId"], item.get("resourceId") or "") for item in items]
    thread_at = {place: writable_thread(caller, *place) for place in dict.fromkeys(places)}
    return [thread_at[place] for place in places]


def writable_thread(caller: MemoryCaller, key: str, resource: str) -> Thread:
    """Return the thread of a message, which must exist. Participants may write too."""
    if caller.is_bound:
        caller.resource_to_write(resource)
    return get_thread(caller, key, resource)


def save_messages(thread: Thread, messages: Sequence[list[NewMessage]], author: Author) -> list[WireMessage]:
    """Append messages to a locked thread, the new ones together. Those that it has are returned as they are stored."""
    # Not one by one: a thousand messages would hold the lock of the thread for thousands of queries.
    known = known_message_keys(thread, (rows[0].key for rows in messages if rows[0].key))
    new: list[int] = []
    repeated: list[int] = []
    for position, rows in enumerate(messages):
        (repeated if rows[0].key in known else new).append(position)
        known |= {rows[0].key} - {""}  # the same request may have it twice
    rows = [row for position in new for row in messages[position]]
    saved = dict(zip(new, append_new(thread, rows, author), strict=True))
    for part in in_parts(repeated):
        saved |= zip(part, stored_messages(thread, [messages[position] for position in part]), strict=True)
    return [saved[position] for position in range(len(messages))]


def append_new(thread: Thread, rows: Sequence[NewMessage], author: Author) -> list[WireMessage]:
    if not rows:
        return []
    reject_full_thread(thread, len(rows))
    return wire_messages(thread, append_messages(thread, rows, author=author))


def stored_messages(thread: Thread, messages: Sequence[list[NewMessage]]) -> list[WireMessage]:
    """Return messages that a thread has, in their order. Raise Conflict for one with another text."""
    stored = stored_rows(thread, [rows[0].key for rows in messages])
    for message in messages:
        if [derive_fields(row.data).text for row in message] != [row.text for row in stored[message[0].key]]:
            text = f"Message {message[0].key} has another text. Send the new message under a new id."
            raise Conflict(text, "message_exists")
    return [body for message in messages for body in wire_messages(thread, stored[message[0].key])]


def stored_rows(thread: Thread, keys: Sequence[str]) -> dict[str, list[Message]]:
    """Return the rows of the messages of a thread with these IDs, by ID."""
    head_of = dict(thread.messages.filter(key__in=keys).values_list("key", "head_number"))
    rows = thread.messages.filter(head_number__in={*head_of.values()}).order_by("number")
    by_head = {head: [*group] for head, group in groupby(rows, attrgetter("head_number"))}
    return {str(key): by_head[head] for key, head in head_of.items()}


def check_write(request: Request) -> None:
    """Raise RoleRequired if the API key is limited to reading."""
    caller_of(request).require_write()


class DeleteMessagesView(JSONView):
    """Deletion of messages: all or none."""

    @idempotent_if(check_write)
    def post(self, request: Request) -> HttpResponse:
        caller = caller_of(request)
        caller.require_write()
        body = json_object_body(request)
        with checking_body(request, body, "messageIds") as names:
            keys = read_message_ids(body.get("messageIds"))
        # Without the texts, which may be long.
        columns = Message.objects.only("key", "thread_id", "number", "head_number")
        rows = [*columns.filter(key__in=keys, thread__in=threads_of_query(request, caller))]
        reject_ambiguous(rows)
        if missing := sorted({*keys} - {row.key for row in rows}):
            if caller.is_bound and Message.objects.filter(key__in=missing, thread__realm=caller.realm).exists():
                raise Forbidden("A message belongs to another resource. No message was deleted.", "other_resource")
            raise NotFound(f"Message with id {missing[0]} not found. No message was deleted.")
        delete_messages(rows)
        answer = {"success": True, "message": f"{pluralize(len(keys), 'message')} deleted successfully"}
        return json_response(answer | warning_payloads(names.unknown))


def threads_of_query(request: Request, caller: MemoryCaller) -> QuerySet[Thread]:
    """Return the threads of the realm, or those that a query names by thread or resource."""
    with QueryParams(request) as query:
        thread, resource = query.text("threadId") or "", read_resource(query)
    threads = Thread.objects.for_caller(caller).filter(realm=caller.realm)
    if resource and not caller.is_bound:
        threads = threads.filter(resource_key=resource)
    return threads if thread in NOT_GIVEN else threads.filter(key=thread)


def reject_ambiguous(rows: Sequence[Message]) -> None:
    """Raise Conflict if an ID is that of messages of several threads: a client may choose the same ID again."""
    counts = Counter(row.key for row in rows)
    if repeated := next((key for key, count in counts.items() if count > 1), None):
        message = f"Several threads have a message with id {repeated}. Name one: ?threadId=… No message was deleted."
        raise Conflict(message, "message_ambiguous")


def read_message_ids(value: object) -> list[str]:
    """Return the IDs of a body: an ID, an object with one, or a list of both. Raise BadRequest."""
    items = value if isinstance(value, list) else [value]
    keys: list[Any] = [item.get("id") if isinstance(item, dict) else item for item in items]
    if not 0 < len(keys) <= MAX_SAVED or not all(isinstance(key, str) and key for key in keys):
        raise BadRequest("request body", [("messageIds", f"Send 1 to {MAX_SAVED:,} message IDs.")])
    return [*dict.fromkeys(keys)]
