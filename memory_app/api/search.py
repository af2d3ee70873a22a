"""Search in conversations, by meaning or by words."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from django.db.models import Q, QuerySet
from django.http import HttpResponse
from rest_framework.request import Request

from agentcms.api.query_params import QueryParams
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.db.text_conditions import contains_text
from agentcms.errors import BadRequest
from agentcms.vectors import EmbedderFailed, UnknownEmbedder
from agentcms.wire.json_types import JSONObject
from agentcms.wire.timestamps import format_timestamp
from agents_app.search.tokenizer import find_words
from memory_app.api.lookups import (
    NOT_GIVEN,
    agent_of_query,
    caller_of,
    memory_of_query,
    read_resource,
    visible_agent_of,
)
from memory_app.history.threads import get_thread
from memory_app.history.wire_messages import wire_role
from memory_app.models import Message, Resource, Thread
from memory_app.realms import MemoryCaller
from memory_app.recall.options import RecallSettings, recall_options
from memory_app.recall.search import (
    RecalledMessage,
    embed_question,
    recall_messages,
    vectors_of_resource,
    vectors_of_thread,
)
from memory_app.recall.surroundings import head_number_of, load_heads, load_surroundings

log = logging.getLogger(__name__)

MAX_RESULTS = 100
MAX_TERMS = 20
MAX_RANGE = 10


class SearchQuery(NamedTuple):
    """The parameters of a search."""

    text: str
    resource: str
    thread: str
    limit: int
    config: JSONObject


class SearchMemoryView(JSONView):
    """Search in a thread or in all of a resource: by meaning if the agent has semantic recall, otherwise by words."""

    def get(self, request: Request) -> HttpResponse:
        caller, query = caller_of(request), read_query(request)
        thread = get_thread(caller, query.thread, query.resource) if query.thread else None
        agent = agent_of_query(request) or visible_agent_of(request, thread)
        options = recall_options(memory_of_query(request, agent))
        resource = query.resource
        if thread is None:
            # A search needs a resource, unlike a list of the whole realm: the method for writing raises without one.
            resource = caller.default_resource if caller.is_bound else caller.resource_to_write(resource)
        results = find_by_meaning(caller, thread, resource, query, options) if options is not None else None
        kind = "text" if results is None else "semantic"
        if results is None:
            results = find_by_words(caller, thread, resource, query)
        scope = "resource" if thread is None else "thread"
        body = {"results": results, "count": len(results), "query": query.text}
        return json_response({**body, "searchScope": scope, "searchType": kind})


def read_query(request: Request) -> SearchQuery:
    """Return the parameters of a search. Raise BadRequest."""
    with QueryParams(request) as query:
        text = (query.text("searchQuery") or "").strip()
        resource, thread = read_resource(query), query.text("threadId") or ""
        limit = query.integer("limit", 20, 1, MAX_RESULTS)
        config = query.json_object("memoryConfig") or {}
        if not text:
            query.add_fault("searchQuery", "This is required.")
    return SearchQuery(text, resource, "" if thread in NOT_GIVEN else thread, limit, config)


def find_by_meaning(
    caller: MemoryCaller, thread: Thread | None, resource: str, query: SearchQuery, options: RecallSettings
) -> list[JSONObject] | None:
    """Return the most similar messages, or None if the embedder does not answer."""
    top_k = read_option(recall_config(query.config), "topK", 1, MAX_RESULTS)
    before, after = read_range(query.config, (options.before, options.after))
    try:
        queries = embed_question(options.embedder, query.text)
    except (EmbedderFailed, UnknownEmbedder) as error:
        log.warning("Messages are searched by their words: %s", error)
        return None
    if thread is not None:
        vectors = vectors_of_thread(thread.pk, options.embedder)
    else:
        owner = Resource.objects.filter(realm=caller.realm, key=resource).first()
        vectors = vectors_of_resource(owner.pk if owner else None, options.embedder)
    recalled = recall_messages(
        vectors,
        queries,
        min(top_k or query.limit, query.limit),
        before=before,
        after=after,
        threshold=options.threshold,
    )
    return message_bodies(recalled)


def message_bodies(items: Sequence[RecalledMessage]) -> list[JSONObject]:
    heads = load_heads([item.message for item in items])
    return [found_message_body(item, heads[item.message.pk]) for item in items]


def found_message_body(item: RecalledMessage, head: Message) -> JSONObject:
    """Return a message that was found, under the ID of the message as the API shows it."""
    row = item.message
    return {
        **message_summary(row, row.text),
        "id": head.key,
        "threadId": row.thread.key,
        "threadTitle": row.thread.title,
        "score": round(item.score, 4),
        "context": {"before": message_summaries(item.before), "after": message_summaries(item.after)},
    }


def message_summaries(rows: Sequence[Message]) -> list[JSONObject]:
    """Return messages, of which one may have several rows, as the API shows them."""
    groups = ([*group] for _, group in groupby(rows, head_number_of))
    return [message_summary(group[0], "\n".join(row.text for row in group if row.text)) for group in groups]


def find_by_words(caller: MemoryCaller, thread: Thread | None, resource: str, query: SearchQuery) -> list[JSONObject]:
    """Return the newest messages that contain all words."""
    before, after = read_range(query.config, (0, 0))
    if thread is not None:
        threads = Thread.objects.filter(pk=thread.pk)
    else:
        threads = Thread.objects.for_caller(caller).of_resource(caller.realm, resource)
    messages = filter_by_words(threads, query.text).select_related("thread").order_by("-created_at", "-pk")
    rows = [*messages[: query.limit]]
    around = load_surroundings(rows, before, after)
    # Every hit has all words, so all have the best score.
    return message_bodies([RecalledMessage(row, 0, 1, *around[row.pk]) for row in rows])


def recall_config(config: JSONObject) -> JSONObject:
    """Return the options of semantic recall, which may stand at the top too."""
    recall = config.get("semanticRecall")
    return recall if isinstance(recall, dict) else config


def read_range(config: JSONObject, default: tuple[int, int]) -> tuple[int, int]:
    """Return how many messages before and after each result the caller wants. As in an agent, it may be an object."""
    recall = recall_config(config)
    value = recall.get("messageRange")
    if isinstance(value, dict):
        before, after = (read_option(value, name, 0, MAX_RANGE, "messageRange.") for name in ("before", "after"))
        return before or 0, after or 0
    reach = read_option(recall, "messageRange", 0, MAX_RANGE)
    return default if reach is None else (reach, reach)


def read_option(options: JSONObject, name: str, minimum: int, maximum: int, path: str = "") -> int | None:
    """Return a number of the options of semantic recall, or None without one. Raise BadRequest."""
    value = options.get(name)
    if value is not None and (type(value) is not int or not minimum <= value <= maximum):
        message = f"Give a whole number from {minimum} to {maximum}."
        raise BadRequest("query parameters", [(f"memoryConfig.{path}{name}", message)])
    return value


def filter_by_words(threads: QuerySet[Thread], text: str) -> QuerySet[Message]:
    """Return the messages of threads that contain every word of a text, in upper or lower case."""
    condition = Q()
    # A text without words, such as an emoji, is looked for as it is.
    for word in (find_words(text) or [text])[:MAX_TERMS]:
        condition &= contains_text("text", word)
    return Message.objects.filter(condition, thread__in=threads).exclude(role=Message.Role.TOOL)


def message_summary(row: Message, text: str) -> JSONObject:
    return {"id": row.key, "role": wire_role(row), "content": text, "createdAt": format_timestamp(row.created_at)}
