"""Messages that a run recalls: chosen by their meaning, for one question in one thread."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentcms.wire.json_types import JSONObject
from agentcms.wire.timestamps import format_timestamp
from memory_app.history.message_data import USER, derive_fields
from memory_app.history.messages_for_model import with_turn
from memory_app.history.participants import has_other_participants
from memory_app.history.turn_markup import ThreadTurns, find_turns, is_spoken
from memory_app.models import Message, Thread, Vector
from memory_app.recall.options import RecallSettings
from memory_app.recall.parts import cut_parts
from memory_app.recall.search import RecalledMessage, recall_messages, vectors_of_resource, vectors_of_thread

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from agentcms.vectors.embedders import Rows

MAX_RECALLED_LENGTH = 4000  # of a recalled message, in characters

Known = Collection[tuple[str, str]]  # messages by role and text


@dataclass(frozen=True)
class RecallScope:
    """The place in which a run recalls messages: its thread, or all threads of its resource."""

    thread_id: int | None
    resource_id: int | None

    def turns(self) -> ThreadTurns:
        """Return the participants of the thread."""
        thread = Thread.objects.only("realm").filter(pk=self.thread_id).first() if self.thread_id else None
        return find_turns(thread) if thread is not None else ThreadTurns()

    def vectors(self, options: RecallSettings) -> QuerySet[Vector]:
        """Return the vectors of the scope.

        A conversation with participants recalls only itself: they may not read the others of its resource.
        """
        if options.scope == "thread" or self.resource_id is None or has_other_participants(self.thread_id):
            return vectors_of_thread(self.thread_id, options.embedder)
        return vectors_of_resource(self.resource_id, options.embedder)


def recall_for_run(scope: RecallScope, options: RecallSettings, queries: Rows, known: Known) -> list[JSONObject]:
    """Return the recalled messages and those around them as JSON, by thread and in their order.

    `known` are the messages that the model gets anyway.
    """
    turns = scope.turns()
    recalled = recall_messages(
        scope.vectors(options),
        queries,
        options.top_k,
        before=options.before,
        after=options.after,
        threshold=options.threshold,
        is_known=lambda row: window_form(row, turns) in known,
        distinct=True,
    )
    return as_json(recalled, scope.thread_id)


def window_form(row: Message, turns: ThreadTurns) -> tuple[str, str]:
    """Return a message by role and text as the model gets it among the last messages: with markup and turn."""
    fields = derive_fields(with_turn(row, turns))
    return fields.role, fields.text


def as_json(recalled: Collection[RecalledMessage], thread_id: int | None) -> list[JSONObject]:
    """Return each message once, with its score if it was found itself."""
    threads = {item.message.thread_id: item.message.thread for item in recalled}
    items: dict[int, JSONObject] = {}
    for item in recalled:
        for row in filter(text_for_model, (*item.before, *item.after)):
            items.setdefault(row.pk, message_json(row, threads[row.thread_id], 0))
    for item in recalled:
        # After the neighbours: a message that is both keeps its score.
        values = message_json(item.message, item.message.thread, item.part)
        items[item.message.pk] = {**values, "score": round(item.score, 4)}
    for values in items.values():
        values["isHere"] = values["thread"] == thread_id
    return sorted(items.values(), key=lambda values: (values["thread"], values["number"]))


def message_json(row: Message, thread: Thread, part: int) -> JSONObject:
    return {
        "message": row.pk,
        "thread": row.thread_id,
        "threadTitle": thread.title or thread.key,
        "number": row.number,
        "role": USER if is_spoken(row) else row.role,
        "author": row.author_name,
        "text": excerpt_of_part(text_for_model(row), part),
        "at": format_timestamp(row.created_at),
        "part": part,
        "score": None,
    }


def text_for_model(row: Message) -> str:
    """Return the text of a message. A signal that is not the words of a person has its markup, as when it came."""
    return row.text if row.role != Message.Role.SIGNAL or is_spoken(row) else derive_fields(row.data).text


def excerpt_of_part(text: str, part: int) -> str:
    """Return a text, or its part that was found if it is long."""
    return text if len(text) <= MAX_RECALLED_LENGTH else f"… {cut_parts(text)[part]} …"


def reload_messages(stored: Collection[JSONObject]) -> list[JSONObject]:
    """Return recalled messages again, of which a run has stored IDs and scores. Deleted ones are left out."""
    rows = Message.objects.select_related("thread").in_bulk([item["message"] for item in stored])
    return [
        {**message_json(rows[item["message"]], rows[item["message"]].thread, item["part"]), **item}
        for item in stored
        if item["message"] in rows
    ]


def message_author(row: Message) -> str:
    """Return the name of the author of a message for people."""
    return row.author_name or ("User" if is_spoken(row) else "Agent")
