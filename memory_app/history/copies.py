"""Copies of threads."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import IntegrityError, transaction
from django.db.models import F

from agentcms.errors import Conflict
from memory_app.history.messages import NewMessage, append_messages, rows_of
from memory_app.history.threads import create_thread, get_or_create_resource
from memory_app.models import Message, Thread
from memory_app.observational.jobs import observe_if_enabled
from memory_app.realms import MemoryCaller
from memory_app.recall.indexing import index_if_recalled


class CopiedMessages(NamedTuple):
    """The messages that a copy takes: all, or some by their number, time or ID."""

    limit: int | None = None
    start: datetime | None = None
    end: datetime | None = None
    keys: Sequence[str] | None = None


def copy_thread(
    caller: MemoryCaller, thread: Thread, key: str, resource: str, chosen: CopiedMessages, **columns: Any
) -> Thread:
    """Create a thread with copies of the chosen messages, which get new IDs. Raise Conflict if the key is taken."""
    heads = thread.messages.filter(head_number=F("number"))
    if chosen.start:
        heads = heads.filter(created_at__gte=chosen.start)
    if chosen.end:
        heads = heads.filter(created_at__lte=chosen.end)
    if chosen.keys is not None:
        heads = heads.filter(key__in=chosen.keys)
    if chosen.limit is not None:
        newest = [*heads.order_by("-number").values_list("pk", flat=True)[: chosen.limit]]
        heads = thread.messages.filter(pk__in=newest)
    columns = {"agent_id": thread.agent_id, "agent_key": thread.agent_key, **columns}
    try:
        with transaction.atomic():
            copy = create_thread(caller, get_or_create_resource(caller, resource), key, **columns)
            rows = [*rows_of(heads).order_by("number")]
            append_copies(copy, rows)
    except IntegrityError:
        raise Conflict(f"Thread with id {key} already exists", "thread_exists") from None
    index_if_recalled(copy)
    observe_if_enabled(copy)
    copy.refresh_from_db()
    return copy


def append_copies(copy: Thread, rows: Sequence[Message]) -> None:
    """Append copies of rows with their authors."""
    new = [NewMessage(row.data, "", row.attributes, row.created_at, row.head_number != row.number) for row in rows]
    for stored, row in zip(append_messages(copy, new), rows, strict=True):
        if row.author_name:
            Message.objects.filter(pk=stored.pk).update(author_id=row.author_id, author_name=row.author_name)
