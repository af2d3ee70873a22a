"""The observations of a thread as they are now: those that the model is given, and those that wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice, takewhile
from operator import sub

from django.db.models import Q, QuerySet, Subquery, Sum, Value
from django.db.models.functions import Coalesce

from memory_app.history.message_data import SIGNAL
from memory_app.models import Message, Observation, Thread
from memory_app.observational.limits import ObservationLimits


@dataclass(frozen=True)
class ObservationLog:
    """The rows of the latest generation of a thread. `reflection` waits to begin the next one."""

    generation: int = 0
    active: Sequence[Observation] = ()
    buffered: Sequence[Observation] = ()
    reflection: Observation | None = None

    @property
    def active_until(self) -> int:
        """The number of the last message that an observation replaces."""
        return self.active[-1].last if self.active else 0

    @property
    def observed_until(self) -> int:
        """The number of the last message that an observation covers."""
        return self.buffered[-1].last if self.buffered else self.active_until

    @property
    def tokens(self) -> int:
        """The tokens of the active observations."""
        return sum(row.tokens for row in self.active)


def load_log(thread_id: int) -> ObservationLog:
    """Return the observations of a thread in one query."""
    # From the latest generation with an active row on: a reflection that waits is alone in the one after it.
    active = Observation.objects.filter(thread=thread_id, is_active=True).order_by("-generation")
    latest = Coalesce(Subquery(active.values("generation")[:1]), Value(0))
    rows = [*Observation.objects.filter(thread=thread_id, generation__gte=latest).order_by("generation", "first")]
    if not rows:
        return ObservationLog()
    generation = rows[0].generation
    current = [row for row in rows if row.generation == generation]
    return ObservationLog(
        generation,
        [row for row in current if row.is_active],
        [row for row in current if not row.is_active],
        next((row for row in rows if row.generation > generation), None),
    )


def messages_after(thread_id: int, number: int) -> QuerySet[Message]:
    """Return the messages of a thread after a number, without signals that wait for a run."""
    waiting = Q(role=SIGNAL, seen_by=None)
    return Message.objects.filter(thread=thread_id, number__gt=number).exclude(waiting)


def tokens_after(thread_id: int, number: int) -> int:
    """Return the tokens of the messages of a thread after a number."""
    return messages_after(thread_id, number).aggregate(tokens=Sum("tokens"))["tokens"] or 0


# --- Activation


@dataclass(frozen=True)
class ObservationActivation:
    """Observations or a reflection that have taken the place of what they cover."""

    rows: Sequence[Observation]
    is_reflection: bool = False


@dataclass(frozen=True)
class ActivatedLog:
    """The log of a thread after activation, the tokens of its raw messages, and what was activated."""

    log: ObservationLog
    raw_tokens: int
    activations: Sequence[ObservationActivation] = field(default=())


def is_due(log: ObservationLog, raw_tokens: int, limits: ObservationLimits) -> bool:
    """Return whether something waits whose threshold is reached."""
    observes = bool(log.buffered) and raw_tokens >= limits.message_tokens
    return observes or (log.reflection is not None and log.tokens >= limits.observation_tokens)


def activate_due(thread: Thread, limits: ObservationLimits) -> ActivatedLog:
    """Activate what waits, as far as the thresholds of a locked thread are reached."""
    log = load_log(thread.pk)
    raw_tokens = tokens_after(thread.pk, log.active_until)
    activations: list[ObservationActivation] = []
    if log.buffered and raw_tokens >= limits.message_tokens:
        activations.append(activate_observations(log, raw_tokens, limits))
        log = load_log(thread.pk)
        raw_tokens = tokens_after(thread.pk, log.active_until)
    if log.reflection is not None and log.tokens >= limits.observation_tokens:
        activations.append(activate_reflection(log, log.reflection))
        log = load_log(thread.pk)
    return ActivatedLog(log, raw_tokens, activations)


def activate_observations(log: ObservationLog, raw_tokens: int, limits: ObservationLimits) -> ObservationActivation:
    """Activate the oldest observations that wait, as many as leave enough raw messages, and at least one."""
    # The raw tokens that are left after each observation. The first sum is that before any of them.
    left = accumulate((row.message_tokens for row in log.buffered), sub, initial=raw_tokens)
    count = sum(1 for _ in takewhile(lambda tokens: tokens >= limits.kept_tokens, islice(left, 1, None)))
    rows = log.buffered[: max(count, 1)]
    Observation.objects.filter(pk__in=[row.pk for row in rows]).update(is_active=True)
    return ObservationActivation(rows)


def activate_reflection(log: ObservationLog, reflection: Observation) -> ObservationActivation:
    """Begin the next generation with its reflection. It takes along the observations of later messages."""
    later = Observation.objects.filter(
        thread=reflection.thread_id, generation=log.generation, first__gt=reflection.last
    )
    later.update(generation=reflection.generation)
    Observation.objects.filter(pk=reflection.pk).update(is_active=True)
    return ObservationActivation([reflection], is_reflection=True)


# --- Changes of messages


def discard_observations(thread_id: int, number: int) -> None:
    """Delete the observations that cover a message which was deleted, and all later ones. They are made again."""
    Observation.objects.filter(thread=thread_id, last__gte=number).delete()
