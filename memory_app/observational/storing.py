"""Storing observations and reflections. All of it happens under the lock of the thread, by the holder of its lease."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction

from agentcms.wire.json_types import JSONObject
from memory_app.history.token_estimate import count_tokens
from memory_app.models import Message, Observation
from memory_app.observational.leases import ThreadLease
from memory_app.observational.limits import ObservationLimits, newest_lines
from memory_app.observational.messages_to_observe import MessageGroup, next_chunk
from memory_app.observational.observation_log import ObservationLog, activate_due, load_log

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ObserverAnswer:
    """The answer of a model about messages or observations."""

    text: str
    model: str
    usage: JSONObject | None = None


def save_observation(
    lease: ThreadLease, chunk: MessageGroup, answer: ObserverAnswer, limits: ObservationLimits
) -> bool:
    """Store an observation, and activate what is due. Return False if its messages have changed meanwhile.

    The model answered without a lock: messages may have been deleted, and another process may have observed them.
    """
    with transaction.atomic():
        thread = lease.lock_thread()
        log = load_log(thread.pk)
        remaining = Message.objects.filter(pk__in=[row.pk for row in chunk.rows]).count()
        if log.observed_until + 1 != chunk.first or remaining != len(chunk.rows):
            return False
        text = newest_lines(answer.text, max(chunk.tokens, limits.chunk_tokens))
        if text != answer.text:
            logger.warning("Thread %s: an observation was cut, because it was longer than its messages.", thread.pk)
        Observation.objects.create(
            thread=thread,
            generation=log.generation,
            first=chunk.first,
            last=chunk.last,
            text=text,
            tokens=count_tokens(text),
            message_tokens=chunk.tokens,
            model=answer.model,
            usage=answer.usage,
        )
        activate_due(thread, limits)
        return True


def find_reflected(log: ObservationLog, limits: ObservationLimits) -> Sequence[Observation]:
    """Return the observations that a reflection has to condense, or none."""
    is_prepared = log.reflection is not None
    # A single observation is condensed only above the limit: there is little to gain before.
    has_new = len(log.active) > 1 or log.tokens >= limits.observation_tokens
    return log.active if not is_prepared and has_new and log.tokens >= limits.reflection_tokens else ()


def save_reflection(
    lease: ThreadLease, reflected: Sequence[Observation], answer: ObserverAnswer, limits: ObservationLimits
) -> bool:
    """Store a reflection, and activate what is due. Return False if it is not shorter, or they have changed."""
    tokens = count_tokens(answer.text)
    if tokens >= sum(row.tokens for row in reflected):
        return False
    with transaction.atomic():
        thread = lease.lock_thread()
        log = load_log(thread.pk)
        # The model answered without a lock: messages may have been deleted, and their observations with them.
        if [row.pk for row in log.active[: len(reflected)]] != [row.pk for row in reflected] or log.reflection:
            return False
        Observation.objects.create(
            thread=thread,
            generation=log.generation + 1,
            first=1,
            last=reflected[-1].last,
            text=answer.text,
            tokens=tokens,
            message_tokens=sum(row.message_tokens for row in reflected),
            model=answer.model,
            usage=answer.usage,
        )
        activate_due(thread, limits)
        return True


def release_if_done(
    lease: ThreadLease, limits: ObservationLimits, find_open_runs: Callable[[int], Collection[UUID]] = lambda _: ()
) -> bool:
    """End the lease unless messages have come meanwhile whose job found it taken. Return whether it ended."""
    with transaction.atomic():
        thread = lease.lock_thread()
        # Looked for under the lock: a job that found the lease taken has ended, and no other one will come.
        open_runs = find_open_runs(thread.pk)  # a run that ended meanwhile has stored its messages under this lock
        if next_chunk(thread.pk, load_log(thread.pk), limits, limits.trigger_tokens, open_runs) is not None:
            return False
        lease.release()
        return True
