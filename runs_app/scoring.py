"""Scores of answers, which a worker computes in a job after the run."""

from __future__ import annotations

import hashlib
import inspect
import logging
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F

from agentcms.db.column_values import ColumnValues
from agentcms.tracing import spans
from agentcms.wire.json_types import JSONMapping, JSONObject
from agents_app.registry import Kind, registry
from jobs_app import runner
from jobs_app.models import Job
from runs_app.events.stream_chunks import to_storable_json
from runs_app.models import AgentRun, Score, ScorerCount

log = logging.getLogger(__name__)

SCORE_RUN = "score_run"
# Characters that a score stores.
MAX_SCORE_REASON_LENGTH = 5000
MAX_SCORE_ERROR_LENGTH = 2000


def enqueue_scoring(run: AgentRun) -> Job | None:
    """Enqueue a job with the scorers that are sampled for a run. Return None if there are none."""
    scorers = run.configuration.get("scorers") or {}
    # The counts and the job in one transaction: a counted answer is one that is scored.
    with transaction.atomic():
        keys = [key for key, options in scorers.items() if is_sampled(run, key, (options or {}).get("sampling") or {})]
        if not keys:
            return None
        return runner.enqueue(SCORE_RUN, {"run": str(run.pk), "scorers": keys}, requested_by=run.requested_by)


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
    """Score one answer. Scores of an earlier attempt of the job are kept."""
    run = AgentRun.objects.filter(pk=job.parameters["run"]).first()
    if run is None:
        return {"scored": 0}
    existing = set(run.scores.filter(source=Score.Source.LIVE).values_list("scorer", flat=True))
    remaining = [key for key in job.parameters["scorers"] if key not in existing]
    for done, key in enumerate(remaining, 1):
        columns = compute_score(run, key)
        Score.objects.get_or_create(run=run, scorer=key, source=Score.Source.LIVE, defaults=columns)
        job.report_progress(done=done, total=len(remaining))
    return {"scored": len(remaining)}


def compute_score(run: AgentRun, key: str) -> ColumnValues:
    """Return the columns of a score, or an error message in them."""
    entry = registry.get(Kind.SCORER, key) or registry.find_staff_entry(Kind.SCORER, key)
    if entry is None or entry.owner_id not in ("", run.agent_owner_id):
        log.warning("Run %s: no scorer is registered as '%s'.", run.pk, key)
        return {"error": f"No scorer is registered as '{key}'."}
    try:
        with spans.span(f"scorer {key}", {"agentcms.scorer": key, "agentcms.run.id": str(run.pk)}):
            return score_columns(entry.target(**scorer_arguments(entry.target, values_of_run(run))))
    except Exception as error:
        log.exception("The scorer '%s' could not score run %s.", key, run.pk)
        return {"error": to_storable_json(f"{type(error).__name__}: {error}"[:MAX_SCORE_ERROR_LENGTH])}


def score_columns(value: object) -> ColumnValues:
    """Return the columns for what a scorer returned: a number, or an object with score, reason, details and more.

    Models and functions may say what a database refuses, such as a NUL. Raise ValueError for NaN and infinity.
    """
    if not isinstance(value, Mapping):
        return {"score": finite(value)}
    score, cost = value.get("score"), value.get("cost")
    texts = {
        "reason": str(value.get("reason") or "")[:MAX_SCORE_REASON_LENGTH],
        "details": value.get("details") or {},
        "label": str(value.get("label") or "")[:64],
        "error": str(value.get("error") or ""),
        "usage": value.get("usage") or {},
    }
    return {
        **to_storable_json(texts),
        "score": None if score is None else finite(score),
        "cost": None if cost is None else round(Decimal(str(cost)), 8),
        "scorer_version": value.get("version"),
    }


def finite(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"The score is {number}. Return a finite number.")
    return number


def values_of_run(run: AgentRun) -> dict[str, Any]:
    """Return what a scorer may ask for: `answer`, `question` and `run`."""
    texts = [part["text"] for part in run.input["messages"][-1]["content"] if part["type"] == "text"]
    return {"answer": run.output, "question": "\n".join(texts), "run": run}


def scorer_arguments(target: Callable[..., object], available: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that are parameters of a scorer."""
    return {name: available[name] for name in inspect.signature(target).parameters if name in available}
