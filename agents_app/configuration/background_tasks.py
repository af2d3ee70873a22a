"""Tools of an agent that run in the background.

    {"tools": {"research": {"enabled": true, "timeoutMs": 600000, "disposition": "awaited"}, "current-time": false}}

A tool may say so itself, in code. The agent outranks it, and the model may change the figures of a single call.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from django.core.exceptions import ImproperlyConfigured
from pydantic import BaseModel, ConfigDict, Field, Tag, ValidationError

from agentcms.wire.json_types import JSONMapping, JSONObject, JSONValue
from agentcms.wire.names import to_wire
from agents_app.configuration.fields.types import choose_by

BACKGROUND_TASKS = "backgroundTasks"
EVERY_TOOL = "all"
OVERRIDE = "_background"  # the argument with which the model changes the rules of a call
FOREGROUND, DEFERRED, AWAITED = "foreground", "deferred", "awaited"
MAX_TIMEOUT_MS = 24 * 3600 * 1000  # operators limit it further
MAX_TASK_RETRIES = 100
MAX_TOOL_CHOICES = 1000

Disposition = Literal["foreground", "deferred", "awaited"]
# Names of the alternatives of a union. They are not part of the path of an error.
SWITCH_TAG, CHOICE_TAG, EVERY_TAG, SOME_TAG = "[on or off]", "[choices of a tool]", "[every tool]", "[some tools]"
BACKGROUND_TAGS = frozenset({SWITCH_TAG, CHOICE_TAG, EVERY_TAG, SOME_TAG})


class BackgroundToolChoice(BaseModel):
    """The choices of an agent for the background tasks of a tool."""

    model_config = ConfigDict(strict=True, extra="allow")

    enabled: bool | None = None
    timeoutMs: Annotated[int, Field(ge=1, le=MAX_TIMEOUT_MS)] | None = None
    maxRetries: Annotated[int, Field(ge=0, le=MAX_TASK_RETRIES)] | None = None
    disposition: Disposition | None = None
    ordered: bool | None = None


ToolKey = Annotated[str, Field(min_length=1, max_length=256)]


def _kind_of_choice(value: object) -> str | None:
    if isinstance(value, bool):
        return SWITCH_TAG
    return CHOICE_TAG if isinstance(value, dict | BaseModel) else None


def _kind_of_tools(value: object) -> str | None:
    if value == EVERY_TOOL:
        return EVERY_TAG
    return SOME_TAG if isinstance(value, dict) else None


ToolChoice = Annotated[
    Annotated[bool, Tag(SWITCH_TAG)] | Annotated[BackgroundToolChoice, Tag(CHOICE_TAG)],
    choose_by(_kind_of_choice, "true, false or an object"),
]
ToolChoices = Annotated[dict[ToolKey, ToolChoice], Field(max_length=MAX_TOOL_CHOICES)]
AllOrSome = Annotated[
    Annotated[ToolChoices, Tag(SOME_TAG)] | Annotated[Literal["all"], Tag(EVERY_TAG)],
    choose_by(_kind_of_tools, '"all", or an object of tools'),
]


class BackgroundTasks(BaseModel):
    """The background tasks of an agent. Without `tools`, those of the tools that say so themselves."""

    model_config = ConfigDict(strict=True, extra="allow")

    disabled: bool | None = None
    tools: AllOrSome | None = None


def background_choice(value: bool | JSONMapping | None) -> JSONObject | None:
    """Return what a tool says in code under wire names. Raise ImproperlyConfigured if it is not valid."""
    if value is None or isinstance(value, bool):
        return None if value is None else {"enabled": value}
    wire = {to_wire(name): item for name, item in value.items()}
    try:
        BackgroundToolChoice.model_validate(wire)
    except ValidationError as error:
        message = error.errors()[0]["msg"]
        raise ImproperlyConfigured(f"The background of a tool is not valid: {message}.") from None
    if unknown := sorted(wire.keys() - BackgroundToolChoice.model_fields.keys()):
        raise ImproperlyConfigured(f"The background of a tool has no member '{unknown[0]}'.")
    return {"enabled": True, **wire}


@dataclass(frozen=True)
class BackgroundRules:
    """The rules of the calls of a tool that may run in the background.

    A deferred call answers the model at once and delivers its result later. The run waits for an awaited one.
    """

    disposition: str = DEFERRED
    timeout_ms: int | None = None  # None for the default of the server
    max_retries: int | None = None
    ordered: bool = False

    def for_call(self, override: JSONMapping) -> BackgroundRules:
        """Return the rules of a call with the values that the model set for it. Invalid values are ignored."""
        return replace(
            self,
            disposition=self._disposition(override),
            timeout_ms=_number(override.get("timeoutMs"), 1, self.timeout_ms),
            max_retries=_number(override.get("maxRetries"), 0, self.max_retries),
        )

    def _disposition(self, override: JSONMapping) -> str:
        """Return the disposition of a call. The model's own outranks its `enabled`."""
        if (chosen := override.get("disposition")) in (FOREGROUND, DEFERRED, AWAITED):
            return str(chosen)
        match override.get("enabled"):
            case False:
                return FOREGROUND
            case True if self.disposition == FOREGROUND:
                return DEFERRED
        return self.disposition


def _number(value: JSONValue, minimum: int, default: int | None) -> int | None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and value >= minimum else default


def find_rules(
    value: object, names: Collection[str], tool_says: JSONMapping | None, *, tool_is_ordered: bool
) -> BackgroundRules | None:
    """Return the rules of a tool, or None if its calls always run in the foreground.

    Args:
        value: What the agent says: the value of its field `backgroundTasks`.
        names: The key of the tool and its name, by which an agent may refer to it.
        tool_says: What the tool says in code, under wire names. None if it says nothing.
        tool_is_ordered: Whether the tool needs its results to be delivered in the order of the calls.
    """
    config: JSONMapping = value if isinstance(value, dict) else {}
    if config.get("disabled") is True:
        return None
    choice = _agent_choice(config.get("tools"), names)
    says = {**(tool_says or {})}
    enabled = choice.get("enabled", says.get("enabled", False))
    if enabled is not True:
        return None
    merged = {**says, **choice}
    return BackgroundRules(
        merged.get("disposition") or DEFERRED,
        merged.get("timeoutMs"),
        merged.get("maxRetries"),
        bool(merged.get("ordered", tool_is_ordered)),
    )


def _agent_choice(tools: object, names: Collection[str]) -> JSONObject:
    """Return what an agent says of a tool, without what it leaves open."""
    if tools == EVERY_TOOL:
        return {"enabled": True}
    choices = [tools[name] for name in names if name in tools] if isinstance(tools, dict) else []
    choice = choices[0] if choices else {}
    if isinstance(choice, bool):
        return {"enabled": choice}
    return {name: value for name, value in choice.items() if value is not None}
