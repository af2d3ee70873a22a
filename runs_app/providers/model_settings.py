"""Settings of models that editors may set: a list for each dialect, and more where staff allow it for a provider.

Everything else is ignored with a warning. Many settings of the providers name data that a provider stores, of whoever
uses the same API key, or replace what this application sends.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from agentcms.wire.json_types import JSONMapping
from agentcms.wire.names import to_python, to_wire
from agentcms.wire.unknown_names import UnknownName, find_unknown_names
from agents_app.configuration.unknown_in_config import unknown_name_finder
from runs_app.models import ModelProvider
from runs_app.requests.options import (
    ModelOptions,
    is_provider_setting,
    known_option_names,
    model_settings,
    parse_default_options,
)

if TYPE_CHECKING:
    from runs_app.providers.cached_providers import Provider

Adapters = Mapping[str, TypeAdapter[Any]]

IGNORED_KEYS = {"provider", "name", "delay", "maxOutputTokens", "modelSettings"}


class _StrictDict(TypedDict, total=False):
    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]


class AnthropicThinking(_StrictDict, total=False):
    """Settings of Anthropic for thinking."""

    type: Literal["enabled", "disabled", "adaptive"]
    budget_tokens: Annotated[int, Field(ge=1)]


class GoogleThinking(_StrictDict, total=False):
    """Settings of Google for thinking."""

    include_thoughts: bool
    thinking_budget: int
    thinking_level: Literal["minimal", "low", "medium", "high", "MINIMAL", "LOW", "MEDIUM", "HIGH"]


class GoogleSafetySetting(_StrictDict):
    """The threshold of Google for one category of harm."""

    category: str
    threshold: str


_boolean: TypeAdapter[Any] = TypeAdapter(bool)
_top_logprobs: TypeAdapter[Any] = TypeAdapter(Annotated[int, Field(ge=0, le=20)])
_service_tier: TypeAdapter[Any] = TypeAdapter(Literal["auto", "default", "flex", "priority"])
_cache: TypeAdapter[Any] = TypeAdapter(bool | Literal["5m", "1h"])

COMMON_SETTINGS: Adapters = {
    "thinking": TypeAdapter(bool | Literal["minimal", "low", "medium", "high", "xhigh", "max"]),
    "parallel_tool_calls": _boolean,
    "service_tier": _service_tier,
    "logit_bias": TypeAdapter(dict[str, int]),
    "citations": _boolean,
}
CHAT_SETTINGS: Adapters = {
    "openai_reasoning_effort": TypeAdapter(Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]),
    "openai_text_verbosity": TypeAdapter(Literal["low", "medium", "high"]),
    "openai_logprobs": _boolean,
    "openai_top_logprobs": _top_logprobs,
    "openai_service_tier": _service_tier,
    "openai_store": _boolean,
}
DIALECT_SETTINGS: Mapping[str, Adapters] = {
    ModelProvider.Dialect.COMPATIBLE: CHAT_SETTINGS,
    ModelProvider.Dialect.OPENAI: {
        **CHAT_SETTINGS,
        "openai_reasoning_mode": TypeAdapter(Literal["standard", "pro"]),
        "openai_reasoning_summary": TypeAdapter(Literal["detailed", "concise", "auto"]),
        "openai_truncation": TypeAdapter(Literal["disabled", "auto"]),
    },
    ModelProvider.Dialect.ANTHROPIC: {
        "anthropic_effort": TypeAdapter(Literal["low", "medium", "high", "xhigh", "max"]),
        "anthropic_thinking": TypeAdapter(AnthropicThinking),
        "anthropic_service_tier": TypeAdapter(Literal["auto", "standard_only"]),
        "anthropic_cache": _cache,
        "anthropic_cache_instructions": _cache,
        "anthropic_cache_messages": _cache,
        "anthropic_cache_tool_definitions": _cache,
    },
    ModelProvider.Dialect.GOOGLE: {
        "google_thinking_config": TypeAdapter(GoogleThinking),
        "google_safety_settings": TypeAdapter(Annotated[list[GoogleSafetySetting], Field(max_length=20)]),
        "google_logprobs": _boolean,
        "google_top_logprobs": _top_logprobs,
    },
}


# Options of a call in the protocol of the published client that have no effect here.
UNSUPPORTED_OPTIONS = frozenset(
    {
        "abortSignal",
        "clientTools",
        "context",
        "format",
        "includeRawChunks",
        "inputProcessors",
        "instructions",
        "maxProcessorRetries",
        "maxRetries",
        "memory",
        "output",
        "outputProcessors",
        "prepareStep",
        "providerOptions",
        "requestContext",
        "requireToolApproval",
        "resourceId",
        "returnScorerData",
        "runId",
        "savePerStep",
        "scorers",
        "stopWhen",
        "structuredOutput",
        "telemetry",
        "threadId",
        "toolCallConcurrency",
        "toolsets",
        "tracingOptions",
    }
)


def known_setting_names() -> set[str]:
    """Return the wire names of the settings of all dialects, and of the options that are settings of a model."""
    settings = {wire for adapters in (COMMON_SETTINGS, *DIALECT_SETTINGS.values()) for wire in map(to_wire, adapters)}
    return settings | {to_wire(name) for name in ModelOptions.model_fields}


@unknown_name_finder
def find_unknown_model_settings(body: JSONMapping) -> list[UnknownName]:
    """Return the names in the model and the default options of an agent that nothing reads.

    A setting of one provider may be allowed by staff, so it counts as known here; a run warns if it is ignored.
    """
    settings = known_setting_names()
    options = known_option_names() | settings | UNSUPPORTED_OPTIONS
    defaults = body.get("defaultOptions")
    nested = defaults.get("modelSettings") if isinstance(defaults, dict) else None
    return [
        *unknown_names_in(body.get("model"), settings | IGNORED_KEYS, "model"),
        *unknown_names_in(defaults, options, "defaultOptions"),
        *unknown_names_in(nested, settings | UNSUPPORTED_OPTIONS, "defaultOptions.modelSettings"),
    ]


def unknown_names_in(value: object, known: Collection[str], path: str) -> list[UnknownName]:
    """Return the unknown names of an object; none for another value, which validation refuses or ignores."""
    if not isinstance(value, dict):
        return []
    names = [name for name in value if to_wire(name) not in known and not is_provider_setting(name)]
    return find_unknown_names(names, known, path)


def parse_settings(choice: JSONMapping, provider: Provider) -> tuple[dict[str, Any], list[str]]:
    """Return the settings of a model choice for pydantic-ai, and the names of settings that are ignored.

    Names are those of the call options or of pydantic-ai, including settings of one provider:
    `topP`, `thinking`, `openai_reasoning_effort`.
    """
    # Provider settings apart: the others have the names of the options of a call, with the same checks.
    options, issues = parse_default_options({name: choice[name] for name in choice if not is_provider_setting(name)})
    parsed = model_settings(options)
    ignored = [*dict.fromkeys(issue.field.partition("[")[0] for issue in issues)]
    for name, value in choice.items():
        setting = to_python(name)
        if name in IGNORED_KEYS or name in ignored or to_wire(name) in options:
            continue
        # By member: others of them replace what this application sends, such as the messages.
        if setting == "extra_body" and isinstance(value, dict):
            members = {
                member: item for member, item in value.items() if is_staff_setting(f"extra_body.{member}", provider)
            }
            ignored += [f"{name}.{member}" for member in value if member not in members]
            parsed |= {"extra_body": {**parsed.get("extra_body", {}), **members}} if members else {}
        elif is_allowed_setting(setting, value, provider):
            parsed[setting] = value
        else:
            ignored.append(name)
    return parsed, ignored


def is_allowed_setting(name: str, value: object, provider: Provider) -> bool:
    """Return True if an editor may set this setting of a provider to this value."""
    if is_staff_setting(name, provider):
        return True
    adapter = COMMON_SETTINGS.get(name) or DIALECT_SETTINGS.get(provider.dialect, {}).get(name)
    if adapter is None:
        return False
    try:
        # Strict, because the value is sent as it was written, and not as pydantic would convert it.
        adapter.validate_python(value, strict=True)
    except ValidationError:
        return False
    return True


def is_staff_setting(name: str, provider: Provider) -> bool:
    """Return True if staff allowed a setting for a provider."""
    return name in provider.allowed_settings
