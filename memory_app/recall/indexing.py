"""Indexing of messages for semantic recall: a job for a thread after each run, and a nightly one for all threads."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from agentcms.errors import ApiError, Unavailable
from agentcms.vectors import Embedder, EmbedderFailed, find_embedder
from agentcms.vectors.quantize import PackedVector, pack_vector
from jobs_app.models import Job
from jobs_app.runner import enqueue, job_handler, offer_to_superusers
from memory_app.history.turn_markup import is_spoken_signal
from memory_app.models import Message, Thread, Vector
from memory_app.recall.options import agents_with_memory, recall_embedders
from memory_app.recall.parts import cut_parts

log = logging.getLogger(__name__)

INDEX_MESSAGES = "index_messages"
INDEX_MISSING = "index_missing_messages"
INDEX_KINDS = (INDEX_MESSAGES, INDEX_MISSING)
TEXTS_PER_STEP = 50
MAX_LOST_STEPS = 3  # in a row, because their messages were deleted meanwhile
SPOKEN = Q(role__in=(Message.Role.USER, Message.Role.ASSISTANT))

offer_to_superusers("index-messages", "Index missing messages", INDEX_MISSING)


def enqueue_message_indexing(thread_id: int, embedder: str) -> Job:
    """Let a worker index the messages of a thread after the commit."""
    return enqueue(INDEX_MESSAGES, {"thread": thread_id, "embedder": embedder})


def index_if_recalled(thread: Thread) -> None:
    """Let a worker index a thread whose messages came from a client, if its agent recalls messages."""
    for embedder in sorted(recall_embedders(thread.agent)) if thread.agent is not None else ():
        enqueue_message_indexing(thread.pk, embedder)


@job_handler(INDEX_MESSAGES, "Indexing of messages")
def index_messages(job: Job) -> dict[str, int]:
    """Index a thread. A job that was interrupted continues with what is missing."""
    embedder = find_embedder(job.parameters["embedder"])
    count = index_thread(job.parameters["thread"], embedder, lambda done: job.report_progress(done=done))
    return {"indexed": count}


@job_handler(INDEX_MISSING, "Indexing of missing messages")
def index_missing(job: Job) -> dict[str, int]:
    """Index what is missing in all threads that agents recall, the latest threads first.

    Raise the first error of an embedder after the threads of all others: it must not keep them from being indexed.
    """
    total, failure = 0, None
    for name, threads in recalled_threads():
        try:
            embedder = find_embedder(name)
            # Not a cursor of the database: an embedder of a provider returns the connection while it waits.
            for thread_id in [*threads.values_list("pk", flat=True)]:
                total += index_thread(thread_id, embedder, partial(report_sum, job, total))
        except ApiError as error:  # unknown here, or it does not answer
            log.warning("Threads were not indexed with the embedder %s: %s", name, error)
            failure = failure or error
        job.report_progress(done=total)
    if failure is not None:
        raise failure
    return {"indexed": total}


def report_sum(job: Job, earlier: int, count: int) -> None:
    """Report the progress of a job that has indexed earlier threads and a part of this one."""
    job.report_progress(done=earlier + count)


def recalled_threads() -> Iterable[tuple[str, QuerySet[Thread]]]:
    """Return each embedder that an agent uses, with the threads that lack a vector of it."""
    agents: dict[str, set[str]] = {}
    for agent in agents_with_memory():
        for name in recall_embedders(agent):
            agents.setdefault(name, set()).add(agent.pk)
    for name, keys in sorted(agents.items()):
        resources = Thread.objects.filter(agent_id__in=keys).values("resource")
        threads = Thread.objects.filter(Q(agent_id__in=keys) | Q(resource__in=resources), parent=None)
        lacking = missing_messages(name).filter(thread=OuterRef("pk"))
        yield name, threads.filter(Exists(lacking)).order_by("-updated_at", "-pk")


def missing_messages(embedder: str, spoken: Q = SPOKEN) -> QuerySet[Message]:
    """Return the messages with a text that have no vector of an embedder."""
    indexed = Vector.objects.filter(message=OuterRef("pk"), part=0, embedder=embedder)
    return Message.objects.filter(spoken, ~Exists(indexed)).exclude(text="")


def missing_in_thread(thread_id: int, embedder: str) -> QuerySet[Message]:
    """Return the messages of a thread that an embedder has to embed, the newest first.

    Among them are the words that people sent as signals, once the run that saw them has ended: until then input
    processors may change them.
    """
    ended = Message.objects.filter(thread=thread_id).exclude(run_id=None).values("run_id")
    spoken = SPOKEN | (is_spoken_signal() & Q(seen_by__in=ended))
    rows = missing_messages(embedder, spoken).filter(thread=thread_id, thread__parent=None)
    return rows.order_by("-number")


def index_thread(thread_id: int, embedder: Embedder, report: Callable[[int], Any]) -> int:
    """Embed the messages of a thread that lack a vector, the newest first. Return their number.

    `report` gets the number so far after each step. Raise Unavailable if the embedder does not answer.
    """
    count = lost = 0
    rows = missing_in_thread(thread_id, embedder.name)
    # The messages of the step before have vectors now, so that the same query finds the next ones.
    while messages := [*rows.only("pk", "text")[:TEXTS_PER_STEP]]:
        messages = first_texts(messages)
        try:
            store_vectors(thread_id, embedder, messages)
        except IntegrityError:  # a message was deleted meanwhile
            lost += 1
            if lost == MAX_LOST_STEPS:
                raise Unavailable("Messages of the thread were deleted while it was indexed.") from None
            continue
        lost = 0
        count += len(messages)
        report(count)
    return count


def first_texts(messages: Sequence[Message]) -> list[Message]:
    """Return as many of these messages as one step embeds, at least one."""
    texts = 0
    for number, message in enumerate(messages):
        texts += len(cut_parts(message.text))
        if texts > TEXTS_PER_STEP:
            return [*messages[: max(number, 1)]]
    return [*messages]


def store_vectors(thread_id: int, embedder: Embedder, messages: Sequence[Message]) -> None:
    """Embed messages and store their vectors, without those of messages that were deleted meanwhile.

    Raise Unavailable if the embedder does not answer, and IntegrityError if a message is deleted at the same moment.
    """
    parts = [(message.pk, part, text) for message in messages for part, text in enumerate(cut_parts(message.text))]
    # Before the transaction: a provider takes seconds, in which the lock would hold up the runs of the thread.
    rows = embed_parts(embedder, [text for *_, text in parts])
    with transaction.atomic():
        # Locked, because a transfer gives the thread and its vectors to another resource.
        thread = Thread.objects.select_for_update(of=("self",)).filter(pk=thread_id).first()
        if thread is None:
            return
        remaining = {*Message.objects.filter(pk__in=[message.pk for message in messages]).values_list("pk", flat=True)}
        vectors = [
            build_vector(thread, message_id, part, embedder.name, row)
            for (message_id, part, _), row in zip(parts, rows, strict=True)
            if message_id in remaining
        ]
        # Another job may have stored vectors of the same texts by the same embedder meanwhile.
        Vector.objects.bulk_create(vectors, ignore_conflicts=True)


def embed_parts(embedder: Embedder, texts: Sequence[str]) -> list[PackedVector]:
    """Return the vector of each text. Raise Unavailable if the embedder does not answer.

    That of a blank text has no numbers, so that no search compares it. Providers refuse such a text, and with it the
    others of the request.
    """
    filled = [text for text in texts if text]
    packed: Iterator[PackedVector] = iter(())
    try:
        if filled:
            packed = map(pack_vector, embedder.embed(filled, "document"))
    except EmbedderFailed as error:
        raise Unavailable(str(error)) from None
    return [next(packed) if text else PackedVector(1.0, b"") for text in texts]


def build_vector(thread: Thread, message_id: int, part: int, embedder: str, packed: PackedVector) -> Vector:
    return Vector(
        message_id=message_id,
        part=part,
        embedder=embedder,
        resource_id=thread.resource_id,
        thread=thread,
        scale=packed.scale,
        data=packed.data,
    )
