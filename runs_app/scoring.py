"""Scores of answers, which a worker computes in a job after the run."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F

from agentcms.db.column_values import ColumnValues
from agentcms.db.outages import OUTAGE_ERRORS
from agentcms.ids import uuid7
from agentcms.plural import pluralize
from agentcms.tracing import spans
from agentcms.wire.json_types import JSONMapping, JSONObject
from agents_app.registry import Kind, registry
from jobs_app import runner
from jobs_app.models import MAX_ATTEMPTS, Job
from runs_app.engine.thread_pools import keep_loop_running, run_function
from runs_app.events.stream_chunks import to_storable_json
from runs_app.models import AgentRun, Score, ScorerCount

Scored = TypeVar("Scored")

log = logging.getLogger(__name__)

SCORE_RUN = "score_run"
# Characters that a score stores.
MAX_SCORE_REASON_LENGTH = 5000
MAX_SCORE_ERROR_LENGTH = 2000
MAX_SCORE = 1_000_000  # sums and squares of scores must fit a double
MAX_SCORE_COST = 1_000_000  # US dollars, as the column of the cost holds
MAX_SCORER_VERSION = 2**31 - 1  # as the column of the version holds
NOT_SCORABLE = "not scorable"  # the label of an answer that a scorer cannot score


class ScorerTimeout(Exception):
    """The error of a scorer that gave no score in time. The message is for users."""


class AnswerToScore(NamedTuple):
    """An answer, whose scorers are sampled in the transaction that ends its run."""

    run_id: UUID
    agent_id: str | None
    scorers: JSONMapping  # their options by key
    job_id: UUID  # chosen before the transaction, so that the run can send the job after it
    traceparent: str


def find_scoring(run: AgentRun) -> AnswerToScore | None:
    """Return what the end of a run needs to have its answer scored. Return None if the agent has no scorers."""
    scorers = run.configuration.get("scorers")
    if not scorers:
        return None
    return AnswerToScore(run.pk, run.agent_id, scorers, uuid7(), spans.traceparent_to_store(f"enqueue {SCORE_RUN}"))


def create_scoring_jobs(answers: Sequence[AnswerToScore]) -> None:
    """Create a job for each answer of which a scorer is sampled. Nobody sends these jobs to a worker yet.

    The answers are sorted by agent: every process locks the counts of agents in the same order. The caller ends their
    runs in the same transaction. So a process that dies loses no score, and a counted answer is one that is scored.
    """
    columns = AgentRun.objects.filter(pk__in=[answer.run_id for answer in answers]).only("agent_id", "requested_by_id")
    runs = columns.in_bulk()
    for answer in answers:
        run = runs[answer.run_id]
        keys = [
            key
            for key, options in sorted(answer.scorers.items())
            if is_sampled(run, key, (options or {}).get("sampling") or {})
        ]
        if keys:
            parameters = {"run": str(run.pk), "scorers": keys}
            row = {"requested_by_id": run.requested_by_id, "traceparent": answer.traceparent}
            Job.objects.create(pk=answer.job_id, kind=SCORE_RUN, parameters=parameters, **row)


def send_scoring_job(job_id: UUID) -> None:
    """Send the job of an answer to a worker, unless no scorer was sampled. Beat sends it if that fails."""
    try:
        exists = Job.objects.filter(pk=job_id).exists()
    except OUTAGE_ERRORS as error:
        log.warning("The database is not available, so beat sends job %s later: %s", job_id, error)
    else:
        if exists:
            runner.send_job(job_id)


def is_sampled(run: AgentRun, key: str, sampling: JSONMapping) -> bool:
    """Return True if a scorer scores this run. Sampling is by ratio, by count, or absent."""
    if sampling.get("type") == "ratio":
        return sampling_fraction(run.pk, key) < float(sampling["rate"])
    if sampling.get("type") == "count":
        return next_count(run, key) % int(sampling["count"]) == 0
    return True


def sampling_fraction(run_id: UUID, key: str) -> float:
    """Return a number from 0 to below 1 that is constant for a run and a scorer."""
    digest = hashlib.sha256(f"{run_id} {key}".encode()).digest()
    # A float holds 48 bits exactly.
    return int.from_bytes(digest[:6], "big") / 2**48


def next_count(run: AgentRun, key: str) -> int:
    """Increment the number of answers of the agent that the scorer has received, and return it."""
    if run.agent_id is None:  # an agent in code has no row with a count
        return int(sampling_fraction(run.pk, key) * 2**31)
    ScorerCount.objects.get_or_create(agent_id=run.agent_id, scorer=key)
    count = ScorerCount.objects.filter(agent_id=run.agent_id, scorer=key)
    count.update(seen=F("seen") + 1)  # locks the row, so that each answer has its own number
    return count.values_list("seen", flat=True).get()


@runner.job_handler(SCORE_RUN, "Scoring of a run")
def score_run(job: Job) -> JSONObject:
    """Score one answer. Scores of an earlier attempt of the job are kept.

    A scorer that cannot reach the database is asked again by the next attempt, and by the last one gets an error.
    """
    run = AgentRun.objects.filter(pk=job.parameters["run"]).first()
    if run is None:
        return {"scored": 0}
    existing = set(run.scores.filter(source=Score.Source.LIVE).values_list("scorer", flat=True))
    remaining = [key for key in job.parameters["scorers"] if key not in existing]
    outage: Exception | None = None
    for done, key in enumerate(remaining, 1):
        try:
            columns = compute_score(run, key)
        except OUTAGE_ERRORS as error:
            if job.attempts < MAX_ATTEMPTS:
                outage = error  # the others are scored first: the fault may be that of this scorer
                continue
            columns = failure_columns(run, key, error)
        if not save_score(run, key, columns):
            return {"scored": done - 1}
        job.report_progress(done=done, total=len(remaining))
    if outage is not None:
        raise outage
    return {"scored": len(remaining)}


@transaction.atomic
def save_score(run: AgentRun, key: str, columns: ColumnValues) -> bool:
    """Store a live score, unless there is one already. Return False if the run was deleted meanwhile."""
    if not AgentRun.objects.filter(pk=run.pk).lock_in_order():
        return False
    Score.objects.get_or_create(run=run, scorer=key, source=Score.Source.LIVE, defaults=columns)
    return True


def compute_score(run: AgentRun, key: str) -> ColumnValues:
    """Return the columns of a score, or an error message in them. Raise OperationalError or InterfaceError."""
    entry = registry.find_usable(Kind.SCORER, key, run.agent_owner_id)
    if entry is None:
        log.warning("Run %s: no scorer is registered as '%s'.", run.pk, key)
        return {"error": f"No scorer is registered as '{key}'."}
    try:
        with spans.span(f"scorer {key}", {"agentcms.scorer": key, "agentcms.run.id": str(run.pk)}):
            return score_columns(call_in_time(entry.target, scorer_arguments(entry.target, values_of_run(run))))
    except OUTAGE_ERRORS:
        raise
    except ScorerTimeout as error:
        return {"error": str(error)}
    except Exception as error:
        return failure_columns(run, key, error)


def call_in_time(target: Callable[..., object], arguments: JSONMapping) -> object:
    """Return what a scorer returns. Raise ScorerTimeout.

    A function in code is called in a thread: it may hang, or try to end its process.
    """
    if getattr(target, "limits_itself", False):
        return target(**arguments)
    return asyncio.run(within_limit(run_function(target, arguments)))


async def within_limit(scoring: Awaitable[Scored]) -> Scored:
    """Return what a scorer returns: a judge may never answer. Raise ScorerTimeout after `SCORER_TIMEOUT` seconds.

    A function in a thread goes on even then, but nobody waits for it.
    """
    limit: int = settings.SCORER_TIMEOUT
    try:
        async with asyncio.timeout(limit) as time_limit:
            return await keep_loop_running(scoring)
    except TimeoutError:
        if not time_limit.expired():  # that of a provider
            raise
        raise ScorerTimeout(f"The scorer gave no score within {pluralize(limit, 'second')}.") from None


def failure_columns(run: AgentRun, key: str, error: Exception) -> ColumnValues:
    """Log why a scorer failed, and return the columns that say so."""
    log.error("The scorer '%s' could not score run %s.", key, run.pk, exc_info=error)
    return {"error": to_storable_json(f"{type(error).__name__}: {error}"[:MAX_SCORE_ERROR_LENGTH])}


def score_columns(value: object) -> ColumnValues:
    """Return the columns for what a scorer returned: a number, or an object with score, reason, details and more.

    Models and functions may say what a database refuses, such as a NUL. Raise ValueError for NaN, infinity and numbers
    beyond the limits.
    """
    if not isinstance(value, Mapping):
        return {"score": valid_score(value)}
    score, cost, version = value.get("score"), value.get("cost"), value.get("version")
    label = NOT_SCORABLE if score is None and not value.get("error") else ""
    texts = {
        "reason": str(value.get("reason") or "")[:MAX_SCORE_REASON_LENGTH],
        "details": value.get("details") or {},
        "label": str(value.get("label") or label)[:64],
        "error": str(value.get("error") or ""),
        "usage": value.get("usage") or {},
    }
    return {
        **to_storable_json(texts),
        "score": None if score is None else valid_score(score),
        "cost": None if cost is None else valid_cost(cost),
        "scorer_version": None if version is None else valid_version(version),
    }


def valid_score(value: Any) -> float:
    """Return a score as a number. Raise ValueError for NaN, infinity and numbers beyond the limit."""
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"The score is {number}. Return a finite number.")
    if abs(number) > MAX_SCORE:
        raise ValueError(f"The score is {number:g}. Return a number from -{MAX_SCORE:,} to {MAX_SCORE:,}.")
    return number


def valid_cost(value: Any) -> Decimal:
    """Return a cost in US dollars. Raise ValueError for NaN, infinity and numbers beyond the limit."""
    cost = Decimal(str(value))
    if not (cost.is_finite() and abs(cost) < MAX_SCORE_COST):
        raise ValueError(f"The cost is {cost}. Return US dollars below {MAX_SCORE_COST:,}.")
    return round(cost, 8)


def valid_version(value: Any) -> int:
    """Return the version of a scorer. Raise ValueError for what is not a version number."""
    if not (isinstance(value, int) and 0 <= value <= MAX_SCORER_VERSION):
        raise ValueError(f"The version is {str(value)[:64]!r}. Return a whole number, or leave it out.")
    return value


def values_of_run(run: AgentRun) -> dict[str, Any]:
    """Return what a scorer may ask for. An answer in use has no ground truth."""
    texts = [part["text"] for part in run.input["messages"][-1]["content"] if part["type"] == "text"]
    return {"answer": run.output, "question": "\n".join(texts), "ground_truth": None, "run": run}


def scorer_arguments(target: Callable[..., object], available: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that are parameters of a scorer."""
    return {name: available[name] for name in inspect.signature(target).parameters if name in available}
