"""Copies of threads."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import IntegrityError, transaction
from django.db.models import F

from agentcms.db.batches import in_batches
from agentcms.errors import BadRequest, Conflict
from agentcms.wire.timestamps import end_of_millisecond
from memory_app.history.messages import BATCH_SIZE, Author, NewMessage, SignalColumns, append_messages
from memory_app.history.signal_payloads import ERROR
from memory_app.history.threads import create_thread, get_or_create_resource, insert_thread, reject_forgotten
from memory_app.models import Message, Resource, Thread
from memory_app.observational.jobs import observe_if_enabled
from memory_app.realms import MemoryCaller
from memory_app.recall.indexing import index_if_recalled
from memory_app.working.values import Origin, replace_text

MAX_COPY_MB = 64  # of all messages: the response has them too
LARGE_COPY_MESSAGE = f"The messages have more than {MAX_COPY_MB} MB. Copy fewer of them."


class CopiedMessages(NamedTuple):
    """The messages that a copy takes: all, or some by their number, time or ID."""

    limit: int | None = None
    start: datetime | None = None
    end: datetime | None = None
    keys: Sequence[str] | None = None


def copy_thread(
    caller: MemoryCaller, thread: Thread, key: str, resource: str, chosen: CopiedMessages, **columns: Any
) -> Thread:
    """Create a thread with copies of the chosen messages, which get new IDs, and with its working memory.

    Without metadata among the columns, the copy has that of the thread. Raise Conflict if the key is taken, or while
    all data of one of the resources is deleted, and BadRequest for more than MAX_COPY_MB.
    """
    columns = {name: getattr(thread, name) for name in ("agent_id", "agent_key", "agent_owner_id")} | columns
    create = create_thread
    if columns.get("metadata") is None:
        # This metadata set the working memory when the thread was created. The memory has changed since.
        create, columns["metadata"] = insert_thread, thread.metadata
    try:
        with transaction.atomic():
            copy = create(caller, get_or_create_resource(caller, resource), key, **columns)
            copy_messages(thread, chosen_heads(thread, chosen), copy)
            copy_working_memory(thread, copy, Origin(user_id=caller.user.pk))
            # At the end: the deletion may have begun while the messages were read.
            reject_forgotten(Resource.objects.filter(threads=thread.pk).first())
    except IntegrityError:
        raise Conflict(f"Thread with id {key} already exists", "thread_exists") from None
    index_if_recalled(copy)
    observe_if_enabled(copy)
    # The working memory was written through another instance of the row.
    copy.refresh_from_db()
    return copy


def chosen_heads(thread: Thread, chosen: CopiedMessages) -> list[int]:
    """Return the numbers of the first rows of the chosen messages.

    Signals that wait for a run are left out: they still wait in the original thread.
    """
    heads = thread.messages.filter(head_number=F("number")).exclude(role=Message.Role.SIGNAL, seen_by=None)
    if chosen.start:
        heads = heads.filter(created_at__gte=chosen.start)
    if chosen.end:
        heads = heads.filter(created_at__lte=end_of_millisecond(chosen.end))
    if chosen.keys is not None:
        heads = heads.filter(key__in=chosen.keys)
    newest = heads.order_by("-number").values_list("number", flat=True)
    return [*(newest if chosen.limit is None else newest[: chosen.limit])][::-1]


def copy_messages(thread: Thread, heads: Sequence[int], copy: Thread) -> None:
    """Copy the messages that begin with these rows, in parts. Raise BadRequest if they are too large together."""
    size = 0
    for batch in in_batches(heads, BATCH_SIZE):
        rows = [*thread.messages.filter(head_number__in=batch).order_by("number")]
        size += sum(len(str(row.data)) for row in rows)
        if size > MAX_COPY_MB * 1024 * 1024:
            raise BadRequest("request body", [("options.messageLimit", LARGE_COPY_MESSAGE)])
        append_messages(copy, [*map(new_copy, rows)])


def copy_working_memory(thread: Thread, copy: Thread, origin: Origin) -> None:
    """Give a copy the working memory of its thread, unless its own metadata had one."""
    copy.refresh_from_db(fields=["working_memory"])
    if thread.working_memory is not None and copy.working_memory is None:
        replace_text(copy, thread.working_memory, origin)


def new_copy(row: Message) -> NewMessage:
    """Return a copy of a message that is about to be stored, with its author and the runs that wrote or saw it.

    A signal stays one, and keeps why no run has seen it.
    """
    signal = None
    if row.role == Message.Role.SIGNAL:
        delivery = {ERROR: row.delivery[ERROR]} if row.delivery and ERROR in row.delivery else {}
        signal = SignalColumns(row.text, delivery, row.seen_by)
    is_continued = row.head_number != row.number
    author = Author(row.author_id, row.author_name) if row.author_name else None
    return NewMessage(row.data, "", row.attributes, row.created_at, is_continued, signal, author, row.run_id)
