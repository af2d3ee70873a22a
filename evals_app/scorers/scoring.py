"""Scores of answers by any scorer: a stored one, a registered function or an evaluator."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from agentcms.tracing import spans
from agentcms.wire.json_types import JSONValue
from agents_app.registry import Kind, registry
from evals_app.scorers.kinds.evaluators import score_by_evaluator
from evals_app.scorers.live import LiveEvaluator
from evals_app.scorers.results import Answer, NotScorable, ScorerError, ScoreResult
from evals_app.scorers.snapshots import UNKNOWN_SCORER_MESSAGE, find_stored_version, score_by_snapshot
from runs_app.engine.thread_pools import run_db, run_function
from runs_app.scoring import MAX_SCORE_ERROR_LENGTH, NOT_SCORABLE, ScorerTimeout, scorer_arguments, within_limit

log = logging.getLogger(__name__)

MISSING_VERSION_MESSAGE = (
    "Version {version} of the scorer '{key}' was deleted, or the dataset moved to a team without this scorer. Start "
    "another experiment."
)


async def score_answer(
    scorer_key: str, version: int | None, answer: Answer, owner_id: str | None = None
) -> ScoreResult:
    """Return the score of an answer. A failure of the scorer is the `error` of the result.

    `version` is the number of a version of a stored scorer. By default its live version scores. With `owner_id`,
    stored scorers that the owner may not use are unknown.
    """
    stored = await run_db(find_stored_version, scorer_key, version, owner_id)
    with spans.span(f"scorer {scorer_key}", {"agentcms.scorer": scorer_key}):
        if stored is not None:
            return await score_by_snapshot(stored.snapshot, answer, stored.version_number)
        if version is not None:
            return ScoreResult(error=MISSING_VERSION_MESSAGE.format(key=scorer_key, version=version))
        return await score_by_registered(scorer_key, answer)


async def score_by_registered(key: str, answer: Answer) -> ScoreResult:
    """Return the score of an answer by a scorer in code."""
    entry = registry.get(Kind.SCORER, key)
    if entry is None:
        return ScoreResult(error=UNKNOWN_SCORER_MESSAGE.format(key=key))
    try:
        if isinstance(entry.target, LiveEvaluator):
            return await within_limit(score_by_evaluator(entry.target.target, answer))
        arguments = scorer_arguments(entry.target, values_of_answer(answer))
        return result_of_value(await within_limit(run_function(entry.target, arguments)))
    except NotScorable as error:
        return ScoreResult(reason=str(error), label=NOT_SCORABLE)
    except (ScorerError, ScorerTimeout) as error:
        return ScoreResult(error=str(error))
    except Exception as error:
        # Without the message, which may quote the answer.
        log.warning("The scorer '%s' failed: %s.", key, type(error).__name__)
        return ScoreResult(error=f"{type(error).__name__}: {error}"[:MAX_SCORE_ERROR_LENGTH])


def values_of_answer(answer: Answer) -> dict[str, Any]:
    """Return what a registered function may ask for."""
    return {
        "answer": answer.output,
        "question": answer.input,
        "ground_truth": answer.ground_truth,
        "run": answer.run,
    }


def result_of_value(value: JSONValue) -> ScoreResult:
    """Return the result of what a function returned: a number, or an object with score, reason and details."""
    if not isinstance(value, Mapping):
        return ScoreResult(float(value))
    score, reason, details = value.get("score"), str(value.get("reason") or ""), dict(value.get("details") or {})
    if score is None:
        return ScoreResult(None, reason, details, NOT_SCORABLE)
    return ScoreResult(float(score), reason, details)
