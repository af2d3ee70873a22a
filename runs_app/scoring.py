"""Scorers look at an answer after it was given, in a worker: nobody waits for them."""

from __future__ import annotations

import hashlib
import inspect
import logging
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F

from agents_app.registry import Kind, registry
from jobs_app import runner
from jobs_app.models import Job
from runs_app.models import AgentRun, Score, ScorerCount

log = logging.getLogger(__name__)

SCORE_RUN = "score_run"


def enqueue_scoring(run: AgentRun) -> Job | None:
    """Have the scorers of a run's agent whose turn it is look at the answer."""
    asked = run.configuration.get("scorers") or {}
    with transaction.atomic():
        chosen = [key for key, said in asked.items() if is_sampled(run, key, (said or {}).get("sampling") or {})]
        if not chosen:
            return None
        return runner.enqueue(SCORE_RUN, {"run": str(run.pk), "scorers": chosen}, requested_by=run.requested_by)


def is_sampled(run: AgentRun, key: str, sampling: Mapping[str, Any]) -> bool:
    """Whether it is a scorer's turn: always, for a share of the runs, or for one of so many."""
    if sampling.get("type") == "ratio":
        return sampling_fraction(run.pk, key) < sampling["rate"]
    if sampling.get("type") == "count":
        return next_count(run, key) % sampling["count"] == 0
    return True


def sampling_fraction(run_id: UUID, key: str) -> float:
    """A number from 0 to below 1 that a run and a scorer always have: asking twice changes nothing."""
    digest = hashlib.sha256(f"{run_id} {key}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def next_count(run: AgentRun, key: str) -> int:
    """How many answers of its agent the scorer has seen with this one; one in code has no row to count on."""
    if run.agent_id is None:
        return int(sampling_fraction(run.pk, key) * 2**31)
    ScorerCount.objects.get_or_create(agent_id=run.agent_id, scorer=key)
    mine = ScorerCount.objects.filter(agent_id=run.agent_id, scorer=key)
    mine.update(seen=F("seen") + 1)  # it locks the row, so that two answers never have one number
    return mine.values_list("seen", flat=True).get()


@runner.job_handler(SCORE_RUN)
def score_run(job: Job) -> dict[str, Any]:
    """Score one answer; a scorer that scored it before is not asked again."""
    run = AgentRun.objects.filter(pk=job.parameters["run"]).first()
    if run is None:
        return {"scored": 0}
    known = set(run.scores.values_list("scorer", flat=True))
    left = [key for key in job.parameters["scorers"] if key not in known]
    for done, key in enumerate(left, 1):
        score, error = compute_score(run, key)
        Score.objects.get_or_create(run=run, scorer=key, defaults={"score": score, "error": error})
        job.report_progress(done=done, total=len(left))
    return {"scored": len(left)}


def compute_score(run: AgentRun, key: str) -> tuple[float | None, str]:
    """What a scorer says of an answer: a score, or why there is none."""
    entry = registry.get(Kind.SCORER, key)
    if entry is None:
        log.warning("Run %s: no scorer is registered as '%s'.", run.pk, key)
        return None, f"No scorer is registered as '{key}'."
    try:
        return float(entry.target(**scorer_arguments(entry.target, run))), ""
    except Exception as error:
        log.exception("The scorer '%s' could not score run %s.", key, run.pk)
        return None, f"{type(error).__name__}: {error}"[:2000]


def scorer_arguments(target: Any, run: AgentRun) -> dict[str, Any]:
    """What a scorer may ask for, by the names of its parameters: the answer, what was asked, the whole run."""
    said = [part["text"] for part in run.input["messages"][-1]["content"] if part["type"] == "text"]
    known = {"answer": run.output, "question": "\n".join(said), "run": run}
    return {name: known[name] for name in inspect.signature(target).parameters if name in known}
