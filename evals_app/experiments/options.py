"""The options with which an experiment is created."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from agentcms.ids import parse_uuid
from agentcms.wire.json_types import JSONObject, JSONValue
from agents_app.configuration.schema import WIRE_CONFIG, ConfigError, Issue, validate_fields
from evals_app.datasets.schema import Keys, Text
from evals_app.experiments.memory import RESOURCE_NAMES
from evals_app.scorers.results import ScoreValue
from memory_app.history.threads import is_thread_key
from memory_app.realms import MAX_KEY_LENGTH, RESOURCE_MESSAGE, is_resource_key

ShortText = Annotated[str, Field(min_length=1, max_length=200)]
MAX_CONCURRENCY, MAX_REPEATS = 20, 10
MAX_THREAD_LENGTH = 128  # the ID of the experiment is added to it
MAX_SEED = 2**31 - 1 - MAX_REPEATS  # plus the number of the repeat, it fits the integers of all providers

VERSIONS_MESSAGE = "Sub-agents run at their live versions. Omit this. Select the version of the agent by agentVersion."
THREAD_MESSAGE = f"This must be a text of 1 to {MAX_THREAD_LENGTH} printable characters without a slash."
ONLY_AGENTS_MESSAGE = "Only experiments over agents have this. Leave it out."


class Budget(BaseModel):
    """The limits at which an experiment stops: dollars, tokens, failed items, and failed items in a row."""

    model_config = WIRE_CONFIG

    max_cost: Annotated[float, Field(ge=0)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_failures: Annotated[int, Field(ge=1)] | None = None
    max_consecutive_failures: Annotated[int, Field(ge=1)] | None = None


class ExperimentMemory(BaseModel):
    """The thread and the resource of the runs. The thread `per-item` means one for each run."""

    model_config = WIRE_CONFIG

    thread: Annotated[str, Field(min_length=1, max_length=MAX_THREAD_LENGTH)] | None = None
    resource: Annotated[str, Field(min_length=1, max_length=MAX_KEY_LENGTH)] | None = None


class Provenance(BaseModel):
    """The origin of the experiment, as the caller describes it."""

    model_config = WIRE_CONFIG

    source: Text | None = None
    source_id: Text | None = None
    source_version: Text | None = None
    metadata: JSONObject | None = None


class Grouping(BaseModel):
    """Stable dimensions of repeated experiments."""

    model_config = WIRE_CONFIG

    experiment_set_id: ShortText | None = None
    comparison_id: ShortText | None = None
    variant_id: ShortText | None = None
    trial_index: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None


class ExperimentBody(BaseModel):
    """A new experiment."""

    model_config = WIRE_CONFIG

    start: bool | None = None
    # A client that chooses it can cancel the experiment before it has the response, and repeat the request.
    id: Annotated[str, Field(max_length=64)] | None = None
    target_type: Literal["agent", "workflow", "scorer"] | None = None
    target_id: ShortText | None = None
    agent_version: ShortText | None = None
    name: Annotated[str, Field(max_length=200)] | None = None
    description: Text | None = None
    metadata: JSONObject | None = None
    scorer_ids: Keys | None = None
    version: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    max_concurrency: Annotated[int, Field(ge=1, le=MAX_CONCURRENCY)] | None = None
    repeats: Annotated[int, Field(ge=1, le=MAX_REPEATS)] | None = None
    seed: Annotated[int, Field(ge=0, le=MAX_SEED)] | None = None
    request_context: JSONObject | None = None
    memory: ExperimentMemory | None = None
    budget: Budget | None = None
    bars: Annotated[dict[str, float], Field(max_length=50)] | None = None
    gate_scorers: Keys | None = None
    provenance: Provenance | None = None
    grouping: Grouping | None = None
    versions: JSONObject | None = None


class ExperimentChange(BaseModel):
    """The fields of an experiment that may change later."""

    model_config = WIRE_CONFIG

    name: Annotated[str, Field(max_length=200)] | None = None
    description: Text | None = None
    metadata: JSONObject | None = None


class ResultChange(BaseModel):
    """The review of a result by people."""

    model_config = WIRE_CONFIG

    status: Literal["needs-review", "reviewed", "complete"] | None = None
    tags: Keys | None = None
    comment: Text | None = None


class SubmittedScore(BaseModel):
    """A score that a program outside computed."""

    model_config = WIRE_CONFIG

    scorer_id: ShortText
    scorer_name: ShortText | None = None
    score: ScoreValue
    reason: Text | None = None
    metadata: JSONObject | None = None


class SubmittedError(BaseModel):
    """Why an item failed in a program outside."""

    model_config = WIRE_CONFIG

    message: Text
    stack: Text | None = None
    code: ShortText | None = None


class SubmittedResult(BaseModel):
    """A result that a program outside submits."""

    model_config = WIRE_CONFIG

    item_id: ShortText
    attempt: Annotated[int, Field(ge=0, lt=1000)] | None = None
    input: JSONValue = None
    output: JSONValue = None
    ground_truth: JSONValue = None
    error: SubmittedError | None = None
    started_at: str | None = None
    completed_at: str | None = None
    trace_id: ShortText | None = None
    scores: Annotated[list[SubmittedScore], Field(max_length=50)] | None = None


class ItemRun(BaseModel):
    """The options of the run of one item of an experiment."""

    model_config = WIRE_CONFIG

    attempt: Annotated[int, Field(ge=0, lt=1000)] | None = None
    request_context: JSONObject | None = None


def parse_experiment(body: object) -> JSONObject:
    """Return the options of a new experiment. Raise ConfigError."""
    options = validate_fields(ExperimentBody, body)
    issues = []
    if options.get("target_type") and not options.get("target_id"):
        issues.append(Issue("targetId", "This is required with targetType."))
    if options.get("target_id") and not options.get("target_type"):
        options["target_type"] = "agent"
    if options.get("start") is not False and not options.get("target_id"):
        issues.append(Issue("targetId", "This is required, unless start is false."))
    if options.get("id") and parse_uuid(options["id"]) is None:
        issues.append(Issue("id", "This must be a UUID."))
    if options.get("scorer_ids") is not None:
        unknown = [key for key in options.get("gate_scorers") or [] if key not in options["scorer_ids"]]
        issues += [Issue("gateScorers", f"'{key}' is not among scorerIds. Add it there.") for key in unknown]
    if options.get("versions"):
        issues.append(Issue("versions", VERSIONS_MESSAGE))
    if options.get("target_type") in ("workflow", "scorer"):
        issues += [Issue(name, ONLY_AGENTS_MESSAGE) for name in ("memory", "seed") if options.get(name) is not None]
    issues += memory_issues(options)
    if issues:
        raise ConfigError(issues)
    return options


def memory_issues(options: JSONObject) -> list[Issue]:
    """Return an issue for each named thread or resource that no conversation may have."""
    context, memory = options.get("request_context") or {}, options.get("memory") or {}
    named = {f"requestContext.{name}": context.get(name) for name in RESOURCE_NAMES}
    named["memory.resource"] = memory.get("resource")
    # A blank one counts as none, and anything but a text is ignored.
    texts = {field: value for field, value in named.items() if isinstance(value, str) and value}
    issues = [Issue(field, RESOURCE_MESSAGE) for field, value in texts.items() if not is_resource_key(value)]
    thread = memory.get("thread")
    if thread is not None and not is_thread_key(thread):
        issues.append(Issue("memory.thread", THREAD_MESSAGE))
    return issues
