"""Scores by evaluators of pydantic-evals."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from evals_app.scorers.results import FAILED, PASSED, Answer, ScorerError, ScoreResult
from runs_app.engine.thread_pools import run_blocking


def evaluator_context(answer: Answer) -> Any:
    """Return what an evaluator of pydantic-evals reads of an answer."""
    from pydantic_evals.evaluators import EvaluatorContext  # heavy

    context: EvaluatorContext[Any, Any, Any] = EvaluatorContext(
        name=None,
        inputs=answer.input,
        metadata=None,
        expected_output=answer.ground_truth,
        output=answer.output,
        duration=answer.seconds or 0.0,
        # Required by pydantic-evals. Nothing records spans for it here.
        _span_tree=NotImplemented,
        attributes={},
        metrics={},
    )
    return context


async def score_by_evaluator(target: Any, answer: Answer) -> ScoreResult:
    """Score an answer by an evaluator. Raise ScorerError for a result that is not one score."""
    # In a thread: it may block, or query the database, which Django refuses in an event loop.
    value = await run_blocking(target.evaluate, evaluator_context(answer))
    value = await value if inspect.isawaitable(value) else value
    if isinstance(value, Mapping):
        if len(value) != 1:
            raise ScorerError("The evaluator returned several results. Register one evaluator for each.")
        value = next(iter(value.values()))
    reason = getattr(value, "reason", None) or ""
    value = getattr(value, "value", value)
    if isinstance(value, bool):
        return ScoreResult(float(value), reason, label=PASSED if value else FAILED)
    if isinstance(value, int | float):
        return ScoreResult(float(value), reason)
    raise ScorerError(f"The evaluator returned {type(value).__name__}, which is not a score.")
