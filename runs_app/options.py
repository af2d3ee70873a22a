"""The options of a call, and those that an agent has by default: temperature, steps, which tools and the like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings

Options = dict[str, Any]

# Our name of a setting → pydantic-ai's.
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
NAMES = (*SETTINGS, "maxSteps", "toolChoice", "activeTools")


def read_options(body: Mapping[str, Any]) -> Options:
    """The options that a body names, under their wire names. Raises ShapeError."""
    given = {**body.get("modelSettings", {}), **body}
    if "maxOutputTokens" in given:
        given["maxTokens"] = given["maxOutputTokens"]
    return {name: given[name] for name in NAMES if given.get(name) is not None}


def merge(defaults: Options, call: Options) -> Options:
    """The agent's own options with those of a call over them."""
    return {**defaults, **call}


def model_settings(options: Options) -> dict[str, Any]:
    """What of the options the model is told, as pydantic-ai names it; which tools is a capability's matter."""
    return {SETTINGS[name]: value for name, value in options.items() if name in SETTINGS}


def usage_limits(options: Options) -> Any:
    """How far a run may go: its own bounds, within those of the settings."""
    from pydantic_ai.usage import UsageLimits

    steps = min(options.get("maxSteps", settings.RUN_MAX_STEPS), settings.RUN_MAX_STEPS)
    return UsageLimits(request_limit=steps, total_tokens_limit=settings.RUN_MAX_TOKENS)
