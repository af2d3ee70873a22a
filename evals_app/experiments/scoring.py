"""Scores of the results of experiments."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import replace
from decimal import Decimal
from typing import Any

from access_app.caller import Caller
from access_app.permissions import SHARED_OWNER, owner_ids_for
from agentcms.db.connections import return_connection
from agentcms.wire.json_types import JSONObject
from agents_app.registry import Entry, Kind, registry
from evals_app.experiments.spending import Spent
from evals_app.models import Experiment, ExperimentResult, ItemVersion, Scorer
from evals_app.scorers.results import Answer, ScoreResult, answer_of_run
from runs_app.engine.thread_pools import run_db
from runs_app.events.stream_chunks import to_storable_json
from runs_app.scoring import MAX_SCORE, MAX_SCORE_REASON_LENGTH

MAX_SCORERS = 100  # that run at the same time for one experiment: 20 answers with 5 judges

UNSTORABLE_MESSAGE = "The scorer returned details that cannot be stored as JSON ({error})."


def find_scorer(key: str, owner_id: str | None) -> Entry | None:
    """Return the scorer with a key that an owner may use, or None."""
    return registry.find_usable(Kind.SCORER, key, owner_id)


def usable_scorers(user: Caller) -> dict[str, Entry]:
    """Return the scorers that the user may see: those in code, the shared ones and those of the user's teams."""
    owners = None if user.is_superuser else {SHARED_OWNER, *owner_ids_for(user)}
    return {entry.key: entry for entry in registry.selectable(Kind.SCORER, owners)}


def missing_scorers(keys: Iterable[str], owner_id: str) -> list[str]:
    """Return the keys of scorers that an owner may not use, or that do not exist.

    A process reads the table of scorers once a second. One that another process stored just now is not missing.
    """
    missing = [key for key in keys if find_scorer(key, owner_id) is None]
    registry.reload_if_missing(Kind.SCORER, missing)
    return [key for key in missing if find_scorer(key, owner_id) is None]


def scorer_title(key: str, owner_id: str | None) -> str:
    """Return the name of a scorer, or its key if nothing registers it."""
    entry = find_scorer(key, owner_id)
    return entry.title if entry is not None else key


def scorer_titles(experiment: Experiment, keys: Iterable[str]) -> list[str]:
    """Return the names of scorers of an experiment."""
    return [scorer_title(key, experiment.dataset.owner_id) for key in keys]


def scorer_keys(experiment: Experiment, version: ItemVersion) -> list[str]:
    """Return the scorers of an item, each once, from one place: the experiment, else the item, else the dataset."""
    keys = experiment.scorer_keys
    if keys is None:
        keys = version.scorer_keys
    if keys is None:
        keys = experiment.dataset_scorer_keys
    if keys is None:  # an experiment of an earlier release
        keys = experiment.dataset.scorer_keys
    return list(dict.fromkeys(keys))  # a second score by the same scorer would count as that of another answer


def live_scorer_versions(keys: Collection[str]) -> JSONObject:
    """Return the numbers of the live versions of stored scorers, by key. An experiment scores by them to its end."""
    rows = Scorer.objects.filter(pk__in=keys, live__isnull=False)
    return dict(rows.values_list("pk", "live__version_number"))


def add_scores(result: ExperimentResult, keys: list[str]) -> None:
    """Score the answer of a result by these scorers, and set the scores."""
    return_connection()
    set_scores(result, asyncio.run(compute_scores(result, keys, asyncio.Semaphore(MAX_SCORERS))) if keys else [])


def set_scores(result: ExperimentResult, scores: list[JSONObject]) -> None:
    """Set the scores of a result, with the tokens and the cost of the judges among its scorers."""
    result.scores = scores
    tokens = [entry["usage"]["totalTokens"] for entry in result.scores if (entry["usage"] or {}).get("totalTokens")]
    costs = [entry["cost"] for entry in result.scores if entry["cost"] is not None]
    result.scores_tokens = sum(tokens) if tokens else None
    result.scores_cost = sum(Decimal(str(cost)) for cost in costs) if costs else None


async def compute_scores(result: ExperimentResult, keys: list[str], slots: asyncio.Semaphore) -> list[JSONObject]:
    """Return the scores of the answer of a result by these scorers. They run at the same time, each in a slot."""
    from evals_app.scorers.scoring import score_answer  # imports pydantic-ai, which is heavy

    answer, versions = await read_scored_answer(result), result.experiment.scorer_versions
    owner_id = await run_db(owner_of, result.experiment)

    async def score(key: str) -> ScoreResult:
        async with slots:
            return await score_answer(key, versions.get(key), answer, owner_id)

    scores = await asyncio.gather(*map(score, keys))
    titles = await run_db(scorer_titles, result.experiment, keys)
    return [_entry(key, title, score) for key, title, score in zip(keys, titles, scores, strict=True)]


def owner_of(experiment: Experiment) -> str:
    return experiment.dataset.owner_id


async def read_scored_answer(result: ExperimentResult) -> Answer:
    """Return the answer of a result with all that a scorer may look at."""
    fields = {
        "input": result.effective_input,
        "output": result.output,
        "ground_truth": result.effective_ground_truth,
        "expected_trajectory": result.item_version.expected_trajectory,
    }
    if result.run is None:
        return Answer(**fields)
    return await run_db(answer_of_run, result.run, Spent(result.tokens, result.cost), **fields)


def _entry(key: str, name: str, score: ScoreResult) -> JSONObject:
    """Return a score as a result stores it. A score that is not a number, or outside of the limits, is an error."""
    # Not `abs(…) > MAX_SCORE`, which is False for NaN.
    if score.score is not None and not abs(score.score) <= MAX_SCORE:
        return _entry(key, name, replace(score, score=None, error=f"The score is not a number up to {MAX_SCORE:,}."))
    more: JSONObject = {"label": score.label or None, "version": score.version_number}
    cost = None if score.cost is None else float(score.cost)
    more |= {"details": score.details or None, "usage": score.usage or None, "cost": cost}
    reason = score.reason[:MAX_SCORE_REASON_LENGTH]
    # Models and functions may say what the database refuses, such as a NUL, which would fail the experiment.
    try:
        entry: JSONObject = to_storable_json(score_entry(key, name, score.score, reason, score.error, **more))
    except Exception as error:  # details with a circle, or objects without a text
        return _entry(key, name, ScoreResult(error=UNSTORABLE_MESSAGE.format(error=type(error).__name__)))
    return entry


def score_entry(
    key: str, name: str = "", score: float | None = None, reason: str = "", error: str = "", **more: Any
) -> JSONObject:
    """Return a score as a result stores it and the API shows it."""
    return {
        "scorerId": key,
        "scorerName": name or key,
        "score": score,
        "reason": reason or None,
        "error": error or None,
        **more,
    }
