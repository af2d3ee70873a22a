"""The observations of a thread under wire names."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from itertools import groupby
from operator import attrgetter

from django.db.models import QuerySet
from django.utils import timezone

from agentcms.wire.json_types import JSONObject, JSONValue
from agentcms.wire.timestamps import end_of_millisecond, format_timestamp
from agents_app.configuration.memory.options import ObservationalOptions
from jobs_app.models import Job
from memory_app.models import Observation, Thread
from memory_app.observational.jobs import OBSERVE_THREAD
from memory_app.observational.limits import ObservationLimits, observation_limits
from memory_app.observational.observation_log import ObservationLog, load_log, tokens_after
from memory_app.observational.observations_for_run import join_observations, record_id
from memory_app.observational.storing import find_reflected

INITIAL, OBSERVED, REFLECTED = "initial", "observation", "reflection"


def observation_status(thread: Thread | None, options: ObservationalOptions | None) -> JSONObject:
    """Return figures of the observations of a thread."""
    log = load_log(thread.pk) if thread is not None else ObservationLog()
    working = work_in_progress(thread, log, options)
    rows = [*log.active, *log.buffered]
    return {
        "enabled": options is not None,
        "hasRecord": bool(rows),
        "lastObservedAt": format_timestamp(rows[-1].created_at) if rows else None,
        "tokenCount": tokens_after(thread.pk, log.active_until) if thread is not None else 0,
        "observationTokenCount": log.tokens,
        **working,
    }


def observation_record(thread: Thread, options: ObservationalOptions | None) -> JSONObject | None:
    """Return the observations of a thread as they are now, or None without any."""
    log = load_log(thread.pk)
    rows = [*log.active, *log.buffered]
    if not rows:
        return None
    state: JSONObject = {
        **work_in_progress(thread, log, options),
        "bufferedObservations": join_observations(log.buffered),
        "bufferedObservationChunks": [buffered_chunk(row) for row in log.buffered],
        "pendingMessageTokens": tokens_after(thread.pk, log.active_until),
    }
    if log.reflection is not None:
        state["bufferedReflection"] = log.reflection.text
    return {**record_body(thread, log.generation, log.active, rows, options), **state}


def earlier_generations(thread: Thread, start: datetime | None, end: datetime | None) -> QuerySet[Observation, int]:
    """Return the numbers of earlier generations that began within a period, the latest first."""
    # The first row of a generation is about the first message: its observations cover all messages from there on.
    begun = Observation.objects.filter(thread=thread, generation__lt=load_log(thread.pk).generation, first=1)
    if start is not None:
        begun = begun.filter(created_at__gte=start)
    if end is not None:
        begun = begun.filter(created_at__lte=end_of_millisecond(end))
    return begun.order_by("-generation").values_list("generation", flat=True)


def records_of_generations(
    thread: Thread, generations: Collection[int], options: ObservationalOptions | None
) -> list[JSONObject]:
    """Return the observations of earlier generations, the latest first."""
    rows = Observation.objects.filter(thread=thread, generation__in=generations).order_by("-generation", "first")
    # Only the latest generation is observed and reflected.
    idle = {"isObserving": False, "isReflecting": False, "pendingMessageTokens": 0}
    records: list[JSONObject] = []
    for generation, group in groupby(rows, attrgetter("generation")):
        members = [*group]
        records.append({**record_body(thread, generation, members, members, options), **idle})
    return records


def record_body(
    thread: Thread,
    generation: int,
    active: Sequence[Observation],
    rows: Sequence[Observation],
    options: ObservationalOptions | None,
) -> JSONObject:
    """Return the members that the records of all generations have. `rows` are all of a generation."""
    return {
        "id": record_id(thread.key, generation),
        "scope": "thread",
        "resourceId": thread.resource_key,
        "threadId": thread.key,
        "activeObservations": join_observations(active),
        "originType": REFLECTED if rows[0].is_reflection else OBSERVED if active else INITIAL,
        "generationCount": generation,
        "lastObservedAt": format_timestamp(rows[-1].created_at),
        "totalTokensObserved": sum(row.message_tokens for row in rows),
        "observationTokenCount": sum(row.tokens for row in active),
        "config": config_of(options),
        "createdAt": format_timestamp(rows[0].created_at),
        "updatedAt": format_timestamp(rows[-1].created_at),
    }


def buffered_chunk(row: Observation) -> JSONObject:
    """Return an observation that waits. `firstMessage` and `lastMessage` are numbers of messages in the thread."""
    at = format_timestamp(row.created_at)
    return {
        "id": str(row.pk),
        "cycleId": str(row.pk),
        "observations": row.text,
        "tokenCount": row.tokens,
        "messageTokens": row.message_tokens,
        "firstMessage": row.first,
        "lastMessage": row.last,
        "lastObservedAt": at,
        "createdAt": at,
    }


def config_of(options: ObservationalOptions | None) -> JSONObject:
    """Return the thresholds of an agent, or nothing if it no longer has an observational memory."""
    if options is None:
        return {}
    limits = observation_limits(options)
    models = {
        "observationModel": model_text(options.observation.model or options.model),
        "reflectionModel": model_text(options.reflection.model or options.model),
    }
    return {
        "enabled": True,
        "scope": "thread",
        "messageTokens": limits.message_tokens,
        "observationTokens": limits.observation_tokens,
        **{name: text for name, text in models.items() if text},
    }


def model_text(choice: JSONValue) -> str:
    """Return a model as `provider/name`, or a blank text for that of the agent."""
    return f"{choice['provider']}/{choice['name']}" if isinstance(choice, dict) else choice or ""


# --- Work in progress


def work_in_progress(
    thread: Thread | None, log: ObservationLog, options: ObservationalOptions | None
) -> dict[str, bool]:
    """Return whether a process observes a thread now, or reflects. It reflects after all observations."""
    is_working = thread is not None and thread.observing_until is not None and thread.observing_until > timezone.now()
    if thread is None or not is_working:
        return {"isObserving": False, "isReflecting": False}
    reflects = options is not None and is_reflecting(thread, log, observation_limits(options))
    return {"isObserving": not reflects, "isReflecting": reflects}


def is_reflecting(thread: Thread, log: ObservationLog, limits: ObservationLimits) -> bool:
    waiting = tokens_after(thread.pk, log.observed_until)
    return waiting < limits.trigger_tokens and bool(find_reflected(log, limits))


def is_observed_soon(thread: Thread) -> bool:
    """Return whether a process observes a thread now, or a job waits to do so."""
    jobs = Job.objects.unfinished().filter(kind=OBSERVE_THREAD, parameters__thread=thread.pk)
    return jobs.exists() or Thread.objects.filter(pk=thread.pk, observing_until__gt=timezone.now()).exists()
