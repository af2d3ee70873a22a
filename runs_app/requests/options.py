"""Options of a call and default options of an agent: temperature, number of steps, tool choice and others.

Options have their wire names.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from django.conf import settings
from pydantic import AfterValidator, BaseModel, Field
from pydantic_core import PydanticCustomError

from agentcms.wire.json_types import JSONMapping, JSONObject, JSONValue
from agentcms.wire.names import to_python, to_wire
from agents_app.configuration.fields.types import Durable
from agents_app.configuration.schema import WIRE_CONFIG, ConfigError, Issue, collecting_issues, validate_fields

Options = JSONObject


# Wire names of model settings → names of pydantic-ai.
MODEL_SETTING_NAMES = {
    "temperature": "temperature",
    "topP": "top_p",
    "topK": "top_k",
    "maxTokens": "max_tokens",
    "stopSequences": "stop_sequences",
    "seed": "seed",
    "presencePenalty": "presence_penalty",
    "frequencyPenalty": "frequency_penalty",
}

MAX_APPROVED_TOOLS = 1000  # in requireToolApproval
PROVIDER_SETTING_PREFIXES = ("openai_", "anthropic_", "google_")
DEFAULT_DURABLE_MESSAGE = "Set the field durable of the agent instead."
PROVIDER_SETTING_MESSAGE = "Settings of one provider belong to the model of the agent. Omit this."

Fraction = Annotated[float, Field(ge=0, le=1)]
Penalty = Annotated[float, Field(ge=-2, le=2)]
PositiveCount = Annotated[int, Field(ge=1)]
ShortText = Annotated[str, Field(min_length=1, max_length=256)]


def _tool_choice(value: object) -> object:
    match value:
        case None | "auto" | "none" | "required" | {"type": "tool", "toolName": str()}:
            return value
    message = 'This must be "auto", "none", "required" or {"type": "tool", "toolName": …}.'
    raise PydanticCustomError("tool_choice", "{message}", {"message": message})


def _tool_approval(value: JSONValue) -> object:
    is_list = isinstance(value, list) and len(value) <= MAX_APPROVED_TOOLS
    if value is None or isinstance(value, bool) or (is_list and all(isinstance(key, str) and key for key in value)):
        return value
    message = "This must be true, false or a list of keys of tools."
    raise PydanticCustomError("tool_approval", "{message}", {"message": message})


class ModelOptions(BaseModel):
    """Options that are sent to the model with each request."""

    model_config = WIRE_CONFIG

    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Fraction | None = None
    top_k: PositiveCount | None = None
    max_tokens: PositiveCount | None = None
    max_output_tokens: PositiveCount | None = None  # newer name of max_tokens
    stop_sequences: Annotated[list[ShortText], Field(max_length=16)] | None = None
    seed: int | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None


class CallOptions(ModelOptions):
    """Options of a call in addition to the messages."""

    max_steps: PositiveCount | None = None
    durable: Durable = None
    tool_choice: Annotated[Any, AfterValidator(_tool_choice)] = None
    require_tool_approval: Annotated[Any, AfterValidator(_tool_approval)] = None
    auto_resume_suspended_tools: bool | None = None
    active_tools: Annotated[list[ShortText], Field(max_length=1000)] | None = None
    model_settings: JSONObject | None = None


def known_option_names() -> set[str]:
    """Return the wire names of the options of a call."""
    return {to_wire(name) for name in CallOptions.model_fields}


def is_provider_setting(name: str) -> bool:
    """Return True for settings that only some providers have, under their wire names or those of pydantic-ai."""
    setting = to_python(name)
    return setting.startswith(PROVIDER_SETTING_PREFIXES) or setting in {"extra_body", "extra_headers"}


def provider_setting_issues(body: JSONMapping) -> list[Issue]:
    """Return an issue for each setting of one provider in the options of a call."""
    nested = body.get("modelSettings")
    paths = [*body, *(f"modelSettings.{name}" for name in (nested if isinstance(nested, dict) else ()))]
    names = (path.removeprefix("modelSettings.") for path in paths)
    return [
        Issue(path, PROVIDER_SETTING_MESSAGE)
        for path, name in zip(paths, names, strict=True)
        if is_provider_setting(name)
    ]


def parse_options(body: JSONMapping) -> Options:
    """Return the options in a body, including those in `modelSettings`. Raise ConfigError with wire paths."""
    outer, inner = Options(), Options()
    issues = provider_setting_issues(body)
    nested: list[Issue] = []
    with collecting_issues(issues):
        outer = validate_fields(CallOptions, dict(body))
    with collecting_issues(nested):
        nested_body = body.get("modelSettings")
        inner = validate_fields(ModelOptions, nested_body if isinstance(nested_body, dict) else {})
    issues += [Issue(f"modelSettings.{field}", message) for field, message in nested]
    if issues:
        raise ConfigError(dict.fromkeys(issues))
    outer.pop("model_settings", None)
    options = {to_wire(name): value for name, value in {**inner, **outer}.items() if value is not None}
    if "maxOutputTokens" in options:
        options["maxTokens"] = options.pop("maxOutputTokens")
    return options


def parse_default_options(stored: JSONMapping) -> tuple[Options, list[Issue]]:
    """Return the valid default options of an agent and the issues of the others, which are ignored."""
    if stored.get("durable") is not None:
        options, issues = parse_default_options({name: stored[name] for name in stored if name != "durable"})
        return options, [*issues, Issue("durable", DEFAULT_DURABLE_MESSAGE)]
    try:
        return parse_options(stored), []
    except ConfigError as error:
        issues = error.issues
    rest = _without(stored, (issue.field for issue in issues))
    if rest == stored:
        return {}, issues
    options, nested_issues = parse_default_options(rest)  # validates modelSettings after the outer options
    return options, [*issues, *nested_issues]


def _without(stored: JSONMapping, paths: Iterable[str]) -> Options:
    """Return the options without the members at these paths, which have at most two levels."""
    rest = {name: dict(value) if isinstance(value, dict) else value for name, value in stored.items()}
    for path in paths:
        head, _, inner = path.partition("[")[0].partition(".")
        if head == "modelSettings" and inner:
            rest[head].pop(inner.partition(".")[0], None)
        else:
            rest.pop(head, None)
    return rest


def merge_options(defaults: Options, call: Options) -> Options:
    """Return the default options of an agent, overridden by those of a call.

    A call can ask people about more tools than the agent does, but not about fewer.
    """
    merged = {**defaults, **call}
    required = [options.get("requireToolApproval") for options in (defaults, call)]
    if True in required:
        merged["requireToolApproval"] = True
    elif keys := [key for value in required if isinstance(value, list) for key in value]:
        merged["requireToolApproval"] = [*dict.fromkeys(keys)]
    return merged


def model_settings(options: Options) -> dict[str, Any]:
    """Return the model settings under the names of pydantic-ai.

    The tool choice is not included. It depends on the step, so `StepPolicy` reads it from `RunDeps.options`.
    """
    return {MODEL_SETTING_NAMES[name]: value for name, value in options.items() if name in MODEL_SETTING_NAMES}


def max_steps(options: Options) -> int:
    """Return the maximum number of model requests of a run."""
    return min(int(options.get("maxSteps") or settings.RUN_MAX_STEPS), settings.RUN_MAX_STEPS)
