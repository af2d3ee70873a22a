"""The shape of a scorer, for the API and the pages."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from agentcms.wire.json_schema import reject_unusable_schema
from agentcms.wire.json_types import JSONObject, JSONValue
from agentcms.wire.names import to_wire
from agentcms.wire.patterns import compile_pattern
from agents_app.configuration.fields.types import Name, OwnerId
from agents_app.configuration.schema import WIRE_CONFIG, ConfigError, Issue, as_partial, validate_fields
from evals_app.scorers.expectations import expectation_issues
from evals_app.scorers.kinds.checks import CHECKS
from evals_app.scorers.kinds.judges import JUDGE, score_range
from evals_app.scorers.kinds.pipelines import DROPPABLE, PIPELINE_STEPS, SCORE_STEP, has_prompt, pipeline_steps
from evals_app.scorers.kinds.trajectory import TRAJECTORY_MODES
from evals_app.scorers.presets import PRESETS
from evals_app.scorers.results import ScoreValue
from evals_app.scorers.settings import settings_issues

# Written out, with the types of PRESETS: a Literal takes constants only.
ScorerType = Literal[
    "llm-judge",
    "faithfulness",
    "answer-relevancy",
    "completeness",
    "tone",
    "toxicity",
    "bias",
    "hallucination",
    "prompt-alignment",
    "context-precision",
    "context-recall",
    "tool-call-accuracy",
    "check",
    "trajectory",
    "pipeline",
]
JUDGE_TYPES = {JUDGE, *PRESETS}
# Of each check that cannot work without one.
REQUIRED_SETTING = {
    "matches": "pattern",
    "json-schema": "schema",
    "called-tool": "tool",
    "max-steps": "max",
    "max-seconds": "max",
    "max-cost": "max",
}


ChangeMessage = Annotated[str, Field(max_length=500)]


class Range(BaseModel):
    """The lowest and the highest score."""

    model_config = WIRE_CONFIG

    min: ScoreValue | None = None
    max: ScoreValue | None = None


class ScorerBody(BaseModel):
    """A scorer."""

    model_config = WIRE_CONFIG

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$", max_length=64)] | None = None
    owner_id: OwnerId | None = None
    name: Name
    description: Annotated[str, Field(max_length=10_000)] | None = None
    type: ScorerType
    model: JSONObject | None = None
    instructions: Annotated[str, Field(max_length=50_000)] | None = None
    score_range: Range | None = None
    pass_threshold: float | None = None
    output_schema: JSONObject | None = None
    preset_config: JSONObject | None = None
    default_sampling: JSONObject | None = None
    metadata: JSONObject | None = None
    publish: bool | None = None
    change_message: ChangeMessage | None = None


# What belongs to the scorer as a whole, or to the request, and not to a version.
NOT_IN_SNAPSHOT = ("id", "owner_id", "metadata", "publish", "change_message")
SCORER_WIRE_NAMES = {name: to_wire(name) for name in ScorerBody.model_fields}


def parse_scorer(body: object) -> tuple[JSONObject, JSONObject]:
    """Return the snapshot of a new scorer under wire names, and the other fields. Raise ConfigError."""
    return split_fields(validate_fields(ScorerBody, body))


def parse_scorer_change(body: object) -> tuple[JSONObject, JSONObject]:
    """Return what a body changes in the snapshot of a scorer, and the other fields. Raise ConfigError."""
    return split_fields(validate_fields(as_partial(ScorerBody), body))


def split_fields(fields: JSONObject) -> tuple[JSONObject, JSONObject]:
    other = {name: fields[name] for name in NOT_IN_SNAPSHOT if name in fields}
    return {SCORER_WIRE_NAMES[name]: value for name, value in fields.items() if name not in other}, other


def reject_invalid_scorer(snapshot: JSONObject) -> None:
    """Raise ConfigError with every fault of a configuration."""
    issues = [*common_issues(snapshot)]
    kind, config = snapshot["type"], snapshot.get("presetConfig") or {}
    if kind in JUDGE_TYPES:
        issues += judge_issues(snapshot)
    # The functions below read the settings without looking at their types again.
    elif wrong := settings_issues(kind, config):
        issues += wrong
    elif kind == "check":
        issues += check_issues(config)
    elif kind == "trajectory":
        issues += trajectory_issues(config)
    else:
        issues += pipeline_issues(snapshot, config)
    if issues:
        raise ConfigError(issues)


def common_issues(snapshot: JSONObject) -> list[Issue]:
    low, high = score_range(snapshot)
    issues = []
    if low >= high:
        issues.append(Issue("scoreRange", "The maximum must be above the minimum."))
    elif (threshold := snapshot.get("passThreshold")) is not None and not low <= threshold <= high:
        # Every score would pass, or none.
        issues.append(Issue("passThreshold", f"Give a number from {low:g} to {high:g}, the range of the scores."))
    schema = snapshot.get("outputSchema")
    if schema:
        issues += invalid_schema_issues("outputSchema", schema)
        # The answer of the judge is an object of this schema, whose `score` becomes the score.
        properties = schema.get("properties")
        if not isinstance(properties, dict) or "score" not in properties:
            issues.append(Issue("outputSchema", "Add a property `score` of type number."))
    return issues


def invalid_schema_issues(field: str, schema: JSONValue) -> list[Issue]:
    try:
        reject_unusable_schema(schema)
    except ValueError as error:
        return [Issue(field, f"This is not a JSON Schema: {error}.")]
    return []


def model_issues(snapshot: JSONObject, message: str) -> list[Issue]:
    """Return this message for the provider and the name of the model that are missing."""
    model = snapshot.get("model") or {}
    missing = [name for name in ("provider", "name") if not isinstance(model.get(name), str) or not model[name]]
    return [Issue(f"model.{name}", message) for name in missing]


def judge_issues(snapshot: JSONObject) -> list[Issue]:
    issues = model_issues(snapshot, "A judge needs a model. Enter its provider and name.")
    if snapshot["type"] == JUDGE and not (snapshot.get("instructions") or "").strip():
        issues.append(Issue("instructions", "Describe what the judge looks at and what each score means."))
    return issues


def check_issues(config: JSONObject) -> list[Issue]:
    name = config.get("check")
    if name not in CHECKS:
        return [Issue("presetConfig.check", f"Choose one of {', '.join(CHECKS)}.")]
    required = REQUIRED_SETTING.get(name)
    field = f"presetConfig.{required}"
    if required and config.get(required) is None:
        return [Issue(field, f"The check '{name}' needs this.")]
    if required == "schema":
        return invalid_schema_issues(field, config["schema"])
    if required == "pattern":
        try:
            compile_pattern(config["pattern"])
        except ValueError:
            return [
                Issue(field, "This is not a regular expression. Look-around and back references are not available.")
            ]
    return []


def trajectory_issues(config: JSONObject) -> list[Issue]:
    issues = []
    if config.get("mode") not in (None, *TRAJECTORY_MODES):
        issues.append(Issue("presetConfig.mode", f"Choose one of {', '.join(TRAJECTORY_MODES)}."))
    if (expected := config.get("expected")) is not None:
        issues += expectation_issues(expected, "presetConfig.expected")
    return issues


def pipeline_issues(snapshot: JSONObject, config: JSONObject) -> list[Issue]:
    issues = []
    if SCORE_STEP not in config:
        issues.append(Issue(f"presetConfig.{SCORE_STEP}", "A pipeline needs this step."))
    for name in (step for step in PIPELINE_STEPS if step in config):
        step, field = config[name], f"presetConfig.{name}"
        if step is None or ("function" in step) == ("prompt" in step):
            issues.append(Issue(field, "Name either a function or a prompt."))
        elif "function" in step and step["function"] not in pipeline_steps:
            issues.append(Issue(f"{field}.function", unknown_step_message(step["function"])))
        elif step.get("outputSchema"):
            issues += invalid_schema_issues(f"{field}.outputSchema", step["outputSchema"])
    if has_prompt(config):
        issues += model_issues(snapshot, "A pipeline with a prompt needs a model. Enter its provider and name.")
    dropped = (config.get("prepareRun") or {}).get("drop") or []
    if unknown := sorted({*dropped} - {*DROPPABLE}):
        message = f"Unknown fields: {', '.join(unknown)}. Choose from {', '.join(DROPPABLE)}."
        issues.append(Issue("presetConfig.prepareRun.drop", message))
    return issues


def unknown_step_message(key: str) -> str:
    known = f"Registered are {', '.join(sorted(pipeline_steps))}" if pipeline_steps else "None is registered yet"
    return f"No function is registered as '{key}'. {known}: see `pipeline_step` in docs/scorers.md."
