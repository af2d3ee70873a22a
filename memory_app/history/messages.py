"""Stored messages: appending, loading, deleting. They are separate from runs, which are deleted earlier."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import F, Max, Q
from django.utils import timezone

from agentcms.errors import Conflict
from agentcms.ids import uuid7
from agentcms.wire.json_types import JSONObject, JSONValue
from memory_app.history.locks import lock_threads
from memory_app.history.message_data import SIGNAL, USER, derive_fields, head_numbers
from memory_app.history.messages_for_model import WINDOW_COLUMNS, fit_tokens, window_data
from memory_app.history.titles import enqueue_title
from memory_app.history.turn_markup import find_turns
from memory_app.models import Message, Thread
from memory_app.observational.jobs import enqueue_observing
from memory_app.observational.limits import ObservationLimits
from memory_app.observational.observation_log import discard_observations
from memory_app.recall.indexing import enqueue_message_indexing

MAX_THREAD_MESSAGES = 100_000  # of a thread
BATCH_SIZE = 500


@dataclass(frozen=True)
class Author:
    """The author of the messages of the user in a run."""

    user_id: int | None
    name: str


@dataclass(frozen=True)
class SignalColumns:
    """The columns that only signals have, and the text without markup."""

    text: str
    delivery: JSONObject
    seen_by: UUID | None = None


@dataclass(frozen=True)
class NewMessage:
    """A message that is about to be stored. `data` is the JSON of a message of pydantic-ai."""

    data: JSONObject
    key: str = ""  # blank for a new one
    attributes: JSONObject | None = None
    created_at: datetime = field(default_factory=timezone.now)
    is_continued: bool = False  # True if the API shows it as part of the message before it
    signal: SignalColumns | None = None  # of a signal
    author: Author | None = None  # of a copy: that of the original
    run_id: UUID | None = None  # of a copy: the run that wrote the original


def append_messages(
    thread: Thread, messages: Sequence[NewMessage], *, run_id: UUID | None = None, author: Author | None = None
) -> list[Message]:
    """Append messages to a locked thread, which has room for them."""
    # Processes of the previous release do not maintain `last_number`.
    newest = thread.messages.aggregate(last=Max("number"))["last"] or 0
    first = max(newest, thread.last_number) + 1
    heads: list[int] = []
    rows = []
    for number, message in enumerate(messages, first):
        heads.append(heads[-1] if message.is_continued and heads else number)
        rows.append(build_message_row(thread, number, heads[-1], message, run_id, author))
    stored = Message.objects.bulk_create(rows, batch_size=BATCH_SIZE)
    thread.last_number, thread.updated_at = first + len(rows) - 1, timezone.now()
    Thread.objects.filter(pk=thread.pk).update(last_number=thread.last_number, updated_at=thread.updated_at)
    return stored


def reject_full_thread(thread: Thread, count: int) -> None:
    """Raise Conflict if a thread has no room for this many messages.

    Call it before a run begins, not at its end: the answer would be lost.
    """
    # Numbers are never used again, so there may be fewer messages.
    if thread.last_number + count > MAX_THREAD_MESSAGES and thread.messages.count() + count > MAX_THREAD_MESSAGES:
        raise Conflict(f"A thread has at most {MAX_THREAD_MESSAGES:,} messages. Begin another one.", "thread_full")


def build_message_row(
    thread: Thread, number: int, head: int, message: NewMessage, run_id: UUID | None, author: Author | None
) -> Message:
    role, text, tokens = derive_fields(message.data)
    signal = message.signal
    if signal is not None:
        role, text = SIGNAL, signal.text
    writer = (message.author or author) if role in (USER, SIGNAL) else None
    return Message(
        thread=thread,
        number=number,
        key=message.key or str(uuid7()),
        role=role,
        head_number=head,
        data=message.data,
        text=text,
        tokens=tokens,
        author_id=writer.user_id if writer else None,
        author_name=writer.name if writer else "",
        attributes=message.attributes,
        delivery=signal.delivery if signal else None,
        seen_by=signal.seen_by if signal else None,
        run_id=message.run_id or run_id,
        created_at=message.created_at,
    )


def new_messages(messages: Sequence[JSONObject]) -> list[NewMessage]:
    """Return messages that are about to be stored. An answer with its calls and their results is one message."""
    heads = head_numbers([derive_fields(data).role for data in messages])
    return [
        NewMessage(data, is_continued=head != index)
        for index, (data, head) in enumerate(zip(messages, heads, strict=True))
    ]


def save_run_messages(
    thread_id: int,
    messages: Sequence[JSONObject],
    run_id: UUID,
    author: Author | None = None,
    prompt_key: str = "",
    prompt_at: datetime | None = None,
    embedder: str = "",
    title_from: int | None = None,
    limits: ObservationLimits | None = None,
) -> None:
    """Append the messages of a run to its thread. Do nothing on a second call or if the thread was deleted.

    `prompt_key` is the ID that the client gave to the message of the user, and `prompt_at` its time. `embedder` is
    the one that indexes the messages for semantic recall, or blank. `title_from` is the number of messages from which
    a job writes the title. `limits` are those of observational memory.

    A thread has each ID once: with a taken one nothing of the run could be stored, and its answer would be lost. The
    jobs are in the transaction of the messages, so that a process that dies leaves no message without its jobs.
    """
    with transaction.atomic():
        thread = Thread.objects.select_for_update(of=("self",)).filter(pk=thread_id).first()
        if thread is None or thread.messages.filter(run_id=run_id).exists():
            return
        new = new_messages(messages)
        if new and derive_fields(new[0].data).role == USER:
            new[0] = replace(new[0], key=unused_key(thread, prompt_key), created_at=prompt_at or new[0].created_at)
        append_messages(thread, new, run_id=run_id, author=author)
        if title_from is not None:
            enqueue_title(thread_id, run_id, title_from)
        if embedder:
            enqueue_message_indexing(thread_id, embedder)
        if limits is not None:
            enqueue_observing(thread_id, limits, run_id)


def unused_key(thread: Thread, key: str) -> str:
    """Return a message ID, or a blank text if a message of the thread has it."""
    return key if key and not thread.messages.filter(key=key).exists() else ""


def load_messages(
    thread_id: int, limit: int | None, max_tokens: int | None = None, run_id: UUID | None = None, after: int = 0
) -> list[JSONValue]:
    """Return the data of the last messages of a thread after a number, oldest first, as many as fit both limits.

    `limit` counts the messages as the API shows them; None is unlimited. Signals that wait, and those that the run
    `run_id` has taken, are left out: the run gets them as its own messages.
    """
    rows = window_rows(thread_id, limit, max_tokens, run_id, after)
    # The thread may be deleted after its messages were read. Its run is cancelled then.
    thread = Thread.objects.only("realm").filter(pk=thread_id).first() if rows else None
    return window_data(rows, find_turns(thread)) if thread is not None else []


def window_rows(
    thread_id: int, limit: int | None, max_tokens: int | None = None, run_id: UUID | None = None, after: int = 0
) -> list[Message]:
    """Return the last messages of a thread, oldest first, as `load_messages` gives them to a model."""
    new_signals = Q(role=SIGNAL) & (Q(seen_by=None) | Q(seen_by=run_id))
    messages = Message.objects.filter(thread=thread_id, number__gt=after).exclude(new_signals)
    if limit is not None:
        heads = messages.filter(head_number=F("number")).order_by("-number")
        oldest = heads.values_list("number", flat=True)[limit - 1 : limit].first() if limit else None
        messages = messages.filter(number__gte=oldest) if oldest is not None else messages
        messages = messages if limit else messages.none()
    # Read in chunks: with a limit of tokens, most of a long thread is not read.
    return fit_tokens(messages.order_by("-number").only(*WINDOW_COLUMNS).iterator(), max_tokens)


def known_message_keys(thread: Thread, keys: Iterable[str]) -> set[str]:
    """Return those of these message IDs that the thread has."""
    return {key for key in thread.messages.filter(key__in=[*keys]).values_list("key", flat=True) if key}


def delete_messages(rows: Sequence[Message]) -> None:
    """Delete messages with all their rows, and the observations that were made of them."""
    heads: dict[int, set[int]] = defaultdict(set)
    for row in rows:
        heads[row.thread_id].add(row.head_number or row.number)
    with transaction.atomic():
        # Locked, or a worker could store an observation of these messages at the same time.
        lock_threads(heads.keys())
        for thread_id, numbers in heads.items():
            # Only the key: Django loads the rows that it deletes, and messages may be long.
            Message.objects.filter(thread=thread_id, head_number__in=numbers).only("pk").delete()
            discard_observations(thread_id, min(numbers))
