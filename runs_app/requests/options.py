"""The options of a call, and those that an agent has by default: temperature, steps, which tools and the like.

They are kept under their wire names, as the caller and the agent's configuration have them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from django.conf import settings
from pydantic import AfterValidator, BaseModel, Field
from pydantic_core import PydanticCustomError

from agentcms.wire.names import to_wire
from agents_app.configuration.schema import WIRE_CONFIG, ConfigError, Issue, collecting_issues, validate_fields

Options = dict[str, Any]

MOST_CALLS = 500  # of tools in one run: a model may ask for any number of them in one step

# Our name of a setting of the model → pydantic-ai's.
SETTINGS = {
    "temperature": "temperature",
    "topP": "top_p",
    "topK": "top_k",
    "maxTokens": "max_tokens",
    "stopSequences": "stop_sequences",
    "seed": "seed",
    "presencePenalty": "presence_penalty",
    "frequencyPenalty": "frequency_penalty",
}

Share = Annotated[float, Field(ge=0, le=1)]
Penalty = Annotated[float, Field(ge=-2, le=2)]
Count = Annotated[int, Field(ge=1)]
Word = Annotated[str, Field(min_length=1, max_length=256)]


def _tool_choice(value: Any) -> Any:
    match value:
        case None | "auto" | "none" | "required" | {"type": "tool", "toolName": str()}:
            return value
    sentence = 'This must be "auto", "none", "required" or {"type": "tool", "toolName": …}.'
    raise PydanticCustomError("tool_choice", "{message}", {"message": sentence})


class ModelOptions(BaseModel):
    """What is told to the model with each request."""

    model_config = WIRE_CONFIG

    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Share | None = None
    top_k: Count | None = None
    max_tokens: Count | None = None
    max_output_tokens: Count | None = None  # the newer name of the same
    stop_sequences: Annotated[list[Word], Field(max_length=16)] | None = None
    seed: int | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None


class CallOptions(ModelOptions):
    """What a caller may say beside the messages."""

    max_steps: Count | None = None
    tool_choice: Annotated[Any, AfterValidator(_tool_choice)] = None
    active_tools: Annotated[list[Word], Field(max_length=1000)] | None = None
    model_settings: dict[str, Any] | None = None


def read_options(body: Mapping[str, Any]) -> Options:
    """The options that a body names; those in `modelSettings` count too. Raises ShapeError with wire paths."""
    given, inner = Options(), Options()
    issues: list[Issue] = []
    nested: list[Issue] = []
    with collecting_issues(issues):
        given = validate_fields(CallOptions, dict(body))
    with collecting_issues(nested):
        settings_of_model = body.get("modelSettings")
        inner = validate_fields(ModelOptions, settings_of_model if isinstance(settings_of_model, dict) else {})
    issues += [Issue(f"modelSettings.{field}", message) for field, message in nested]
    if issues:
        raise ConfigError(dict.fromkeys(issues))
    given.pop("model_settings", None)
    named = {to_wire(name): value for name, value in {**inner, **given}.items() if value is not None}
    if "maxOutputTokens" in named:
        named["maxTokens"] = named.pop("maxOutputTokens")
    return named


def read_defaults(stored: Mapping[str, Any]) -> tuple[Options, list[Issue]]:
    """An agent's own options, and what of them cannot be used: a stored agent answers all the same."""
    try:
        return read_options(stored), []
    except ConfigError as error:
        issues = error.issues
    rest = _without(stored, (issue.field for issue in issues))
    if rest == stored:
        return {}, issues
    options, more = read_defaults(rest)  # what is nested is looked at after the rest
    return options, [*issues, *more]


def _without(stored: Mapping[str, Any], paths: Iterable[str]) -> Options:
    """The options without the members at these paths, whose depth is at most two."""
    rest = {name: dict(value) if isinstance(value, dict) else value for name, value in stored.items()}
    for path in paths:
        head, _, inner = path.partition("[")[0].partition(".")
        if head == "modelSettings" and inner:
            rest[head].pop(inner.partition(".")[0], None)
        else:
            rest.pop(head, None)
    return rest


def merge(defaults: Options, call: Options) -> Options:
    """The agent's own options with those of a call over them."""
    return {**defaults, **call}


def model_settings(options: Options) -> dict[str, Any]:
    """What of the options the model is told, as pydantic-ai names it.

    Which tools it may call is not among them: that changes from step to step, and a capability of the agent reads it
    from `Running.options`.
    """
    return {SETTINGS[name]: value for name, value in options.items() if name in SETTINGS}


def most_steps(options: Options) -> int:
    """How many requests to the model a run may make."""
    return min(int(options.get("maxSteps") or settings.RUN_MAX_STEPS), settings.RUN_MAX_STEPS)


def usage_limits(options: Options) -> Any:
    """How far a run may go: its own bounds, within those of the settings."""
    from pydantic_ai.usage import UsageLimits

    return UsageLimits(
        request_limit=most_steps(options), tool_calls_limit=MOST_CALLS, total_tokens_limit=settings.RUN_MAX_TOKENS
    )
