"""Which tools the demo model calls, and with what: those that a message names.

It imports pydantic-ai, which is heavy: import this module where an agent is built, never at start-up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls
from pydantic_ai.tools import ToolDefinition

KINDS = ("workflow-", "agent-")  # what people leave out when they name one


def wanted_calls(message: str, info: AgentInfo) -> DeltaToolCalls:
    """A call of each tool that the message names, in that order; of the first one that must be called otherwise."""
    choice: Any = (info.model_settings or {}).get("tool_choice")
    if choice == "none":
        return {}
    places = [(found, tool) for tool in info.function_tools if (found := place(message, tool))]
    wanted = [tool for _, tool in sorted(places, key=lambda each: each[0])]
    if not wanted and choice in (None, "auto"):
        return {}
    demanded = [tool for tool in info.function_tools if not isinstance(choice, list) or tool.name in choice]
    return {number: call(tool, number, message) for number, tool in enumerate(wanted or demanded[:1])}


def place(message: str, tool: ToolDefinition) -> tuple[int, int] | None:
    """Where a message names a tool, from and to; the longest of its names counts."""
    for name in names(tool):
        if found := re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", message, re.IGNORECASE):
            return found.span()
    return None


def names(tool: ToolDefinition) -> list[str]:
    key = str((tool.metadata or {}).get("key", ""))
    return [each for each in (tool.name, *(tool.name.removeprefix(kind) for kind in KINDS), key) if each]


def call(tool: ToolDefinition, number: int, message: str) -> DeltaToolCall:
    span = place(message, tool)
    after = message[span[1] :] if span else message
    arguments = spelled(after)
    if arguments is None:
        arguments = guessed(tool.parameters_json_schema, after.strip(" :,.") or message)
    return DeltaToolCall(tool.name, json.dumps(arguments), tool_call_id=f"demo_{number}_{tool.name}")


def spelled(text: str) -> dict[str, Any] | None:
    """The JSON object that a text begins with, where it does."""
    start = text.find("{")
    if start < 0 or text[:start].strip(" :,") not in {"", "with", "on"}:
        return None
    try:
        found, _ = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def guessed(schema: Mapping[str, Any], text: str) -> dict[str, Any]:
    """What fits a schema; nothing where it is none, as callers may send with tools of their own."""
    try:
        return fitting(schema, text)
    except (AttributeError, LookupError, TypeError, ValueError):
        return {}


def fitting(schema: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Arguments for what a schema requires, made of a text."""
    properties = schema.get("properties", {})
    return {name: value(properties.get(name, {}), text) for name in schema.get("required", ())}


def value(schema: Mapping[str, Any], text: str) -> Any:
    """Something that a schema takes."""
    if "enum" in schema:
        return schema["enum"][0]
    number = re.search(r"-?\d{1,15}(\.\d{1,15})?", text)
    match schema.get("type", "string"):
        case "integer":
            return int(float(number[0])) if number else 1
        case "number":
            return float(number[0]) if number else 1.0
        case "boolean":
            return True
        case "array":
            return [value(schema.get("items", {}), text)]
        case "object":
            return fitting(schema, text)
        case "null":
            return None
    return text
