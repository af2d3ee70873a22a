"""The shapes of the settings of scorers in `presetConfig`, by their kind."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from agentcms.wire.json_types import JSONMapping, JSONObject, JSONValue
from agentcms.wire.unknown_names import UnknownName, find_unknown_below, find_unknown_names, wire_names
from agents_app.configuration.schema import ConfigError, Issue, validate_fields

# Strict: the text "3" is not a number. Unknown names are not errors: `find_unknown_scorer_settings` reports them.
SETTINGS_CONFIG = ConfigDict(strict=True, extra="ignore")
ToolName = Annotated[str, Field(min_length=1, max_length=256)]
Count = Annotated[int, Field(ge=0, le=100_000)]


# The fields have the names of the settings in snapshots, which are wire names.
class CheckSettings(BaseModel):
    """The settings of a check."""

    model_config = SETTINGS_CONFIG

    check: str
    value: JSONValue = None
    values: Annotated[list[str], Field(min_length=1, max_length=100)] | None = None
    caseSensitive: bool | None = None
    pattern: Annotated[str, Field(max_length=10_000)] | None = None
    # `schema` is a method of BaseModel.
    json_schema: JSONObject | None = Field(None, alias="schema")
    tool: ToolName | None = None
    times: Count | None = None
    arguments: JSONObject | None = None
    max: Annotated[float, Field(ge=0)] | None = None


class TrajectorySettings(BaseModel):
    """The settings of a trajectory."""

    model_config = SETTINGS_CONFIG

    expected: JSONValue = None
    mode: str | None = None
    arguments: Literal["ignore", "compare"] | None = None
    maxSteps: Count | None = None
    forbiddenTools: Annotated[list[ToolName], Field(max_length=200)] | None = None


class StepSettings(BaseModel):
    """A step of a pipeline."""

    model_config = SETTINGS_CONFIG

    function: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    prompt: Annotated[str, Field(min_length=1, max_length=50_000)] | None = None
    outputSchema: JSONObject | None = None


class Preparation(BaseModel):
    """The fields of an answer that the steps of a pipeline do not see."""

    model_config = SETTINGS_CONFIG

    drop: list[str] | None = None


class PipelineSettings(BaseModel):
    """The settings of a pipeline."""

    model_config = SETTINGS_CONFIG

    preprocess: StepSettings | None = None
    analyze: StepSettings | None = None
    generateScore: StepSettings | None = None
    generateReason: StepSettings | None = None
    prepareRun: Preparation | None = None


class NoSettings(BaseModel):
    """The settings of a judge, whose configuration is the record itself."""

    model_config = SETTINGS_CONFIG


SETTINGS: dict[str, type[BaseModel]] = {
    "check": CheckSettings,
    "trajectory": TrajectorySettings,
    "pipeline": PipelineSettings,
}


def settings_issues(kind: str, config: JSONObject) -> list[Issue]:
    """Return the settings of a scorer that have the wrong shape."""
    try:
        validate_fields(SETTINGS[kind], config)
    except ConfigError as error:
        return [Issue(f"presetConfig.{issue.field}", issue.message) for issue in error.issues]
    return []


def find_unknown_scorer_settings(kind: object, body: JSONMapping) -> list[UnknownName]:
    """Return the names in the settings of a scorer that nothing reads. Judges have no settings there."""
    config = body.get("presetConfig")
    if not isinstance(config, dict) or not isinstance(kind, str):
        return []
    shape = SETTINGS.get(kind, NoSettings)
    return [
        *find_unknown_names(config, wire_names(shape), "presetConfig"),
        *find_unknown_below(shape, config, "presetConfig"),
    ]


def settings_of(snapshot: JSONMapping) -> JSONObject:
    """Return the settings of a scorer that its kind reads."""
    known = wire_names(SETTINGS.get(snapshot["type"], NoSettings))
    return {name: value for name, value in (snapshot.get("presetConfig") or {}).items() if name in known}
