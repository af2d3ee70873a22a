"""Targets that are called without a run: workflows and scorers.

A workflow gets the input of an item as its arguments. A scorer gets an answer in it, which it scores.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, Field, validate_call

from agentcms.errors import ApiError
from agentcms.tracing import spans
from agentcms.wire.canonical import canonical, sha256_hex
from agentcms.wire.json_types import JSONObject, JSONValue
from agents_app.configuration.schema import WIRE_CONFIG, ConfigError, validate_fields
from agents_app.registry import Entry, Kind, is_task, registry
from evals_app.datasets.schema import Key
from evals_app.experiments.scoring import find_scorer
from evals_app.models import Experiment, Scorer, ScorerVersion
from evals_app.scorers.changes import find_scorer_version
from evals_app.scorers.results import Answer, ToolUse
from runs_app.building.tool_messages import error_message, text_of_unknown_value
from runs_app.engine.thread_pools import run_function
from runs_app.events.stream_chunks import to_storable_json

INPUT_CODE, FAILED_CODE = "EXPERIMENT_ITEM_INPUT_INVALID", "EXPERIMENT_TARGET_FAILED"
WORKFLOW_INPUT_MESSAGE = "The input must be an object with the arguments of the workflow: {names}."
SCORER_INPUT_MESSAGE = "The input must be an object with an answer: input, output, groundTruth."


class JudgedCall(BaseModel):
    """A call of a tool that a scorer looks at."""

    model_config = WIRE_CONFIG

    tool_name: Key
    args: JSONObject | None = None
    result: JSONValue = None
    is_error: bool | None = None


class JudgedAnswer(BaseModel):
    """An answer that a scorer scores. `context` are results of tools in their order."""

    model_config = WIRE_CONFIG

    input: JSONValue = None
    output: JSONValue
    ground_truth: JSONValue = None
    expected_trajectory: JSONObject | None = None
    context: Annotated[list[JSONValue], Field(max_length=200)] | None = None
    calls: Annotated[list[JudgedCall], Field(max_length=200)] | None = None
    instructions: str | None = None


@dataclass(frozen=True)
class TargetResult:
    """The value that a target returned, or the error. The cost is in dollars."""

    output: JSONValue = None
    error: JSONObject | None = None
    tokens: int | None = None
    cost: float | None = None


@dataclass(frozen=True)
class Callee:
    """A workflow, or a scorer at the version with which the experiment was created."""

    kind: str
    key: str
    version: ScorerVersion | None = None

    @property
    def columns(self) -> JSONObject:
        """The columns of an experiment that say which version it tests."""
        if self.version is None:
            return {}
        digest = sha256_hex(canonical(self.version.snapshot))
        return {
            "version_id": self.version.pk,
            "version_number": self.version.version_number,
            "snapshot_hash": digest,
        }

    def call(self, value: object) -> TargetResult:
        """Call the target with the input of an item. A failure is the `error` of the outcome."""
        if self.kind == Experiment.Target.WORKFLOW:
            return call_workflow(self.key, value)
        return call_scorer(self.key, self.version.version_number if self.version else None, value)


def target_not_found(target_id: str, version: str = "") -> ApiError:
    suffix = f" at version '{version}'" if version else ""
    return ApiError(
        404, f"Target '{target_id}' of the experiment was not found{suffix}", "EXPERIMENT_TARGET_NOT_FOUND"
    )


def version_state_of(version: str) -> str:
    """Return what was asked for: `live`, `draft`, or `version` for an ID or a number."""
    return version or "live" if version in ("", "live", "draft") else "version"


def find_callee(kind: str, key: str, owner_id: str, version: str = "") -> Callee:
    """Return a workflow, or a scorer that an owner may use. Raise ApiError.

    `version` is that of a stored scorer: its ID or number, `draft`, or live by default.
    """
    if kind == Experiment.Target.WORKFLOW:
        # Workflows are code, which has no versions.
        if registry.get(Kind.WORKFLOW, key) is None or version not in ("", "live"):
            raise target_not_found(key, version)
        return Callee(kind, key)
    row = Scorer.objects.select_related("live", "head").usable_by(owner_id).filter(pk=key).first()
    scorer_version = select_scorer_version(row, version) if row is not None else None
    is_code = row is None and version in ("", "live") and find_scorer(key, owner_id) is not None
    if scorer_version is None and not is_code:
        raise target_not_found(key, version)
    return Callee(kind, key, scorer_version)


def select_scorer_version(row: Scorer, version: str) -> ScorerVersion | None:
    """Return the live version, the draft, or the version with an ID or a number such as `v3`, or None."""
    if version in ("", "live", "draft"):
        return row.head if version == "draft" else row.live
    return find_scorer_version(row, version.removeprefix("v"))


def call_workflow(key: str, value: object) -> TargetResult:
    """Call a workflow with the arguments in the input of an item. A Celery task runs in this process, too."""
    entry = registry.get(Kind.WORKFLOW, key)
    if entry is None:
        return failure(f"No workflow is registered as '{key}'.", FAILED_CODE)
    if not isinstance(value, dict):
        return failure(WORKFLOW_INPUT_MESSAGE.format(names=argument_names(entry)), INPUT_CODE)
    function = entry.target.run if is_task(entry.target) else entry.target
    try:
        with spans.span(f"workflow {key}", {"agentcms.workflow": key}):
            returned = asyncio.run(run_function(validate_call(function), value))
            return TargetResult(to_storable_json(returned, fallback=text_of_unknown_value))
    except Exception as error:  # whatever the code of a workflow raises
        return failure(error_message(error), FAILED_CODE)


def argument_names(entry: Entry) -> str:
    return ", ".join(entry.schema.get("properties", {})) or "none"


def call_scorer(key: str, version_number: int | None, value: object) -> TargetResult:
    """Let a scorer score the answer in the input of an item."""
    from evals_app.scorers.scoring import score_answer  # imports pydantic-ai, which is heavy

    try:
        answer = build_answer(validate_fields(JudgedAnswer, value))
    except ConfigError as error:
        return failure(f"{SCORER_INPUT_MESSAGE} {' '.join(error.messages)}", INPUT_CODE)
    result = asyncio.run(score_answer(key, version_number, answer))
    if result.error:
        return failure(to_storable_json(result.error), FAILED_CODE)
    label = {"label": result.label} if result.label else {}
    output = to_storable_json({"score": result.score, "reason": result.reason or None, **label})
    return TargetResult(output, tokens=result.usage.get("totalTokens"), cost=result.cost)


def build_answer(fields: JSONObject) -> Answer:
    """Return the answer that the input of an item describes."""
    uses = [
        ToolUse(call["toolName"], call.get("args") or {}, call.get("result"), bool(call.get("isError")))
        for call in fields.get("calls") or []
    ]
    # Judges read the results of tools as the context of an answer.
    uses += [ToolUse("context", {}, entry) for entry in fields.get("context") or []]
    return Answer(
        fields.get("input"),
        fields["output"],
        fields.get("ground_truth"),
        fields.get("expected_trajectory"),
        calls=tuple(uses),
        instructions=fields.get("instructions") or "",
    )


def failure(message: str, code: str) -> TargetResult:
    return TargetResult(error={"message": message, "code": code})
