"""Search in conversations by text."""

from __future__ import annotations

from typing import Any

from django.db.models import F, Q, QuerySet
from django.http import HttpResponse
from rest_framework.request import Request

from agentcms.api.query_params import QueryParams
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.errors import BadRequest
from agentcms.wire.timestamps import format_timestamp
from agents_app.search.tokenizer import tokenize
from memory_app.api.lookups import NOT_GIVEN, caller_of, read_resource
from memory_app.history.threads import get_thread
from memory_app.models import Message, Thread

MAX_RESULTS = 100
MAX_TERMS = 20
MAX_RANGE = 10


class SearchView(JSONView):
    """Search for messages that contain all words of a query, in a thread or in all of a resource."""

    def get(self, request: Request) -> HttpResponse:
        caller = caller_of(request)
        with QueryParams(request) as query:
            text = (query.text("searchQuery") or "").strip()
            resource, key = read_resource(query), query.text("threadId") or ""
            limit = query.integer("limit", 20, 1, MAX_RESULTS)
            config = query.json_object("memoryConfig") or {}
            if not text:
                query.add_fault("searchQuery", "This is required.")
        reach = read_range(config)
        if key and key not in NOT_GIVEN:
            threads, scope = Thread.objects.filter(pk=get_thread(caller, key, resource).pk), "thread"
        else:
            resource = caller.default_resource if caller.is_bound else caller.resource_to_write(resource)
            threads, scope = Thread.objects.for_caller(caller).of_resource(caller.realm, resource), "resource"
        rows = [*matching(threads, text).select_related("thread").order_by("-created_at", "-pk")[:limit]]
        results = [search_result(row, reach) for row in rows]
        body = {"results": results, "count": len(results), "query": text, "searchScope": scope, "searchType": "text"}
        return json_response(body)


def read_range(config: dict[str, Any]) -> int:
    """Return how many messages around each result the caller wants."""
    recall = config.get("semanticRecall") if isinstance(config.get("semanticRecall"), dict) else config
    reach = recall.get("messageRange", 0) if isinstance(recall, dict) else 0
    if type(reach) is not int or not 0 <= reach <= MAX_RANGE:
        message = f"Give a whole number from 0 to {MAX_RANGE}."
        raise BadRequest("query parameters", [("memoryConfig.messageRange", message)])
    return reach


def matching(threads: QuerySet[Thread], text: str) -> QuerySet[Message]:
    """Return the messages of threads that contain every word of a text."""
    condition = Q()
    for word in (tokenize(text) or [text])[:MAX_TERMS]:
        condition &= Q(text__icontains=word)
    return Message.objects.filter(condition, thread__in=threads).exclude(role=Message.Role.TOOL)


def search_result(row: Message, reach: int) -> dict[str, Any]:
    heads = row.thread.messages.filter(head_number=F("number"))
    before = [*heads.filter(number__lt=row.number).order_by("-number")[:reach]][::-1]
    after = [*heads.filter(number__gt=row.number).order_by("number")[:reach]]
    return {
        **message_summary(row),
        "threadId": row.thread.key,
        "threadTitle": row.thread.title,
        "score": 1,
        "context": {
            "before": [message_summary(item) for item in before],
            "after": [message_summary(item) for item in after],
        },
    }


def message_summary(row: Message) -> dict[str, Any]:
    return {"id": row.key, "role": row.role, "content": row.text, "createdAt": format_timestamp(row.created_at)}
