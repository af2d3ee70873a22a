"""Scores of the results of experiments."""

from __future__ import annotations

import inspect
import json
import logging
import math
from collections.abc import Mapping
from typing import Any

from agents_app.configuration.schema import JSONObject
from agents_app.registry import Entry, Kind, registry
from evals_app.models import Experiment, ExperimentResult, ItemVersion

log = logging.getLogger(__name__)


def find_scorer(key: str, owner_id: str) -> Entry | None:
    """Return the scorer with a key that an owner may use, or None."""
    entry = registry.find_staff_entry(Kind.SCORER, key) or registry.get(Kind.SCORER, key)
    return entry if entry is not None and entry.owner_id in ("", owner_id) else None


def scorer_keys(experiment: Experiment, version: ItemVersion) -> list[str]:
    """Return the scorers of an item, from one place: the experiment, else the item, else the dataset."""
    if experiment.scorer_keys is not None:
        return list(experiment.scorer_keys)
    if version.scorer_keys is not None:
        return list(version.scorer_keys)
    return list(experiment.dataset.scorer_keys)


def score_result(result: ExperimentResult, keys: list[str]) -> list[JSONObject]:
    """Return the scores of a result, as its row stores them."""
    return [_score(result, key) for key in keys]


def _score(result: ExperimentResult, key: str) -> JSONObject:
    entry = find_scorer(key, result.experiment.dataset.owner_id)
    if entry is None:
        return score_entry(key, error=f"No scorer is registered as '{key}'.")
    try:
        value = entry.target(**_arguments(entry.target, result))
    except Exception as error:
        log.exception("The scorer '%s' could not score result %s.", key, result.pk)
        return score_entry(key, entry.title, error=f"{type(error).__name__}: {error}"[:2000])
    details = value if isinstance(value, Mapping) else {"score": value}
    score = float(details["score"])
    if not math.isfinite(score):
        return score_entry(key, entry.title, error="The score is not a finite number.")
    return score_entry(key, entry.title, score, str(details.get("reason") or ""))


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


def _arguments(target: Any, result: ExperimentResult) -> dict[str, Any]:
    """Return the arguments of a scorer, by the names of its parameters."""
    available = {
        "answer": text_of(result.output),
        "output": result.output,
        "question": text_of(result.effective_input),
        "input": result.effective_input,
        "ground_truth": result.effective_ground_truth,
        "run": result.run,
    }
    return {name: available[name] for name in inspect.signature(target).parameters if name in available}


def text_of(value: Any) -> str:
    """Return a JSON value as a text."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)
