"""Pipelines: up to four steps, each a registered function or a prompt with an output schema.

    @pipeline_step("count-claims")
    def count_claims(answer: Answer, results: dict[str, Any]) -> dict[str, Any]: ...

`results` has the results of the earlier steps by name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from agentcms.wire.json_types import JSONMapping, JSONObject, JSONValue
from agents_app.registry.functions import function_registrar
from evals_app.scorers.kinds.judges import label_of, score_range
from evals_app.scorers.results import Answer, ScorerError, ScoreResult
from runs_app.engine.thread_pools import run_blocking
from runs_app.scoring import MAX_SCORE_REASON_LENGTH

PIPELINE_STEPS = ("preprocess", "analyze", "generateScore", "generateReason")
SCORE_STEP, REASON_STEP = PIPELINE_STEPS[2:]
DROPPABLE: dict[str, Any] = {"input": None, "ground_truth": None, "calls": (), "instructions": ""}
NUMBER_SCHEMA = {"type": "object", "properties": {"score": {"type": "number"}}, "required": ["score"]}
REASON_SCHEMA = {"type": "object", "properties": {"reason": {"type": "string"}}, "required": ["reason"]}
ANY_SCHEMA = {"type": "object", "additionalProperties": True}
DEFAULT_SCHEMAS = {SCORE_STEP: NUMBER_SCHEMA, REASON_STEP: REASON_SCHEMA}

PipelineStep = TypeVar("PipelineStep", bound=Callable[..., Any])
pipeline_steps: dict[str, Callable[..., Any]] = {}


def pipeline_step(key: str) -> Callable[[PipelineStep], PipelineStep]:
    """Register a function as a step of pipelines. Raise ImproperlyConfigured for a key that is taken."""
    return function_registrar(pipeline_steps, key, "step")


async def score_by_pipeline(config: JSONObject, answer: Answer) -> ScoreResult:
    """Score an answer by a pipeline. Raise NotScorable and ScorerError."""
    answer = replace(answer, **{name: DROPPABLE[name] for name in (config.get("prepareRun") or {}).get("drop") or []})
    results: JSONObject = {}
    for name in PIPELINE_STEPS:
        if config.get(name) is not None:
            results[name] = await run_step(config, name, answer, results)
    score = score_of_step(results[SCORE_STEP])
    low, high = score_range(config)
    if not low <= score <= high:
        raise ScorerError(f"The pipeline gave {score:g}, which is not between {low:g} and {high:g}.")
    return ScoreResult(score, reason_of_step(results.get(REASON_STEP)), results, label_of(config, score))


def has_prompt(settings: JSONMapping) -> bool:
    """Return whether a step of a pipeline asks the model. Otherwise they are all functions."""
    return any((settings.get(name) or {}).get("prompt") for name in PIPELINE_STEPS)


async def run_step(config: JSONObject, name: str, answer: Answer, results: JSONObject) -> Any:
    """Return the result of a step: what its function returns, or the answer of the model to its prompt."""
    step = config[name]
    if "function" in step:
        function = pipeline_steps.get(step["function"])
        if function is None:
            raise ScorerError(f"No pipeline step is registered as '{step['function']}'.")
        # A copy, so that a step cannot change the results of the others. In a thread: a step may block, or query the
        # database, which Django refuses in an event loop.
        value = await run_blocking(function, answer, dict(results))
        return await value if inspect.isawaitable(value) else value
    from evals_app.scorers.kinds.structured_answers import ask_judge

    data = {"Input": answer.input, "Output": answer.output, "ExpectedOutput": answer.ground_truth, "Results": results}
    given = {key: value for key, value in data.items() if value not in (None, {}, "")}
    schema = step.get("outputSchema") or DEFAULT_SCHEMAS.get(name, ANY_SCHEMA)
    return await ask_judge(config, step["prompt"], given, schema)


def score_of_step(value: JSONValue) -> float:
    """Return the score of a step. Raise ScorerError if it has none."""
    number = value.get("score") if isinstance(value, dict) else value
    if not isinstance(number, int | float):
        raise ScorerError("The step generateScore returned no number.")
    return float(number)


def reason_of_step(value: JSONValue) -> str:
    reason = value.get("reason") if isinstance(value, dict) else value
    return str(reason or "")[:MAX_SCORE_REASON_LENGTH]
