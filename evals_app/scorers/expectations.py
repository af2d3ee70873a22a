"""The shape of expected trajectories, in items and in scorers.

Their contents belong to the caller and are stored unchanged. The names are those of the published client.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from agentcms.wire.json_types import JSONValue
from agentcms.wire.unknown_names import wire_names
from agents_app.configuration.schema import WIRE_CONFIG, ConfigError, Issue, validate_fields

Ordering = Literal["strict", "relaxed", "unordered"]
ToolNames = Annotated[list[str], Field(max_length=200)]
# The last names are those of traces and of the published client.
ARGUMENT_NAMES = ("args", "arguments", "toolArgs")
RESULT_NAMES = ("result", "toolResult")
MAX_STEP_ISSUES = 20
STEP_NAMES = frozenset({"name", "toolName", "stepType", "success", "children", *ARGUMENT_NAMES, *RESULT_NAMES})


class StepTree(BaseModel):
    """The steps that are expected, and how calls are compared with them."""

    model_config = WIRE_CONFIG

    steps: list[JSONValue] | None = None
    ordering: Ordering | None = None


class Trajectory(StepTree):
    """The steps that are expected of an agent, and the limits that hold for all of its calls."""

    max_steps: Annotated[int, Field(ge=0, le=100_000)] | None = None
    max_total_tokens: Annotated[int, Field(ge=0)] | None = None
    max_total_duration_ms: Annotated[float, Field(ge=0)] | None = None
    max_retries_per_tool: Annotated[int, Field(ge=0, le=100_000)] | None = None
    no_redundant_calls: bool | None = None
    allow_repeated_steps: bool | None = None
    blacklisted_tools: ToolNames | None = None
    blacklisted_sequences: Annotated[list[ToolNames], Field(max_length=200)] | None = None


TREE_NAMES, TRAJECTORY_NAMES = wire_names(StepTree), wire_names(Trajectory)


def expectation_issues(value: JSONValue, path: str) -> list[Issue]:
    """Return what is wrong with an expected trajectory: an object, or a list of steps."""
    body = {"steps": value} if isinstance(value, list) else value
    try:
        validate_fields(Trajectory, body)
    except ConfigError as error:
        return [Issue(f"{path}.{issue.field}".rstrip("."), issue.message) for issue in error.issues]
    steps = enumerate(body.get("steps") or [])
    wrong = [number for number, step in steps if not isinstance(step, str | dict)]
    return [
        Issue(f"{path}.steps[{number}]", "Enter the name of a tool, or an object.")
        for number in wrong[:MAX_STEP_ISSUES]
    ]
