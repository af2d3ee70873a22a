"""Tool calls of the demo model: it calls the tools that a message mentions.

Imports pydantic-ai, which is heavy. Import this module only where an agent is built.
"""

from __future__ import annotations

import json
import re
from typing import Any

from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls
from pydantic_ai.tools import ToolDefinition

from agentcms.wire.json_types import JSONMapping, JSONObject

TASK_RESULT = "<background-task "  # the beginning of the result of a background task
MAX_MENTION_POSITION = 20_000  # characters of a message in which tools are looked for
OPTIONAL_PREFIXES = ("workflow-", "agent-")  # users may leave them out of a message

_NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,15})?")


def requested_calls(message: str, info: AgentInfo) -> DeltaToolCalls:
    """Return a call of each tool that the message mentions, in that order.

    Without a mention, return a call of the first tool if the tool choice requires one.
    """
    choice: Any = (info.model_settings or {}).get("tool_choice")
    if choice == "none" or message.startswith(TASK_RESULT):  # a result names its tool without a wish to call it
        return {}
    mentions = [(span, tool) for tool in info.function_tools if (span := find_mention(message, tool))]
    mentioned = [tool for _, tool in sorted(mentions, key=lambda mention: mention[0])]
    if not mentioned and choice in (None, "auto"):
        return {}
    required = [tool for tool in info.function_tools if not isinstance(choice, list) or tool.name in choice]
    return {number: build_call(tool, number, message) for number, tool in enumerate(mentioned or required[:1])}


def find_mention(message: str, tool: ToolDefinition) -> tuple[int, int] | None:
    """Return the span at which a message mentions a tool, or None. The longest name of the tool is tried first."""
    beginning = message[:MAX_MENTION_POSITION]
    lowered = beginning.lower()
    for name in mentionable_names(tool):
        # The plain search is much faster than the pattern, and there may be a thousand tools.
        if name.lower() in lowered and (match := mention_pattern(name).search(beginning)):
            return match.span()
    return None


def mention_pattern(name: str) -> re.Pattern[str]:
    """Return the pattern of a name as a whole word."""
    return re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])", re.IGNORECASE)


def mentionable_names(tool: ToolDefinition) -> list[str]:
    key = str((tool.metadata or {}).get("key", ""))
    without_prefix = [tool.name.removeprefix(prefix) for prefix in OPTIONAL_PREFIXES]
    return [name for name in (tool.name, *without_prefix, key) if name]


def build_call(tool: ToolDefinition, number: int, message: str) -> DeltaToolCall:
    span = find_mention(message, tool)
    after = message[span[1] :] if span else message
    arguments = parse_arguments(after)
    if arguments is None:
        arguments = guess_arguments(tool.parameters_json_schema, after.strip(" :,.") or message)
    return DeltaToolCall(tool.name, json.dumps(arguments), tool_call_id=f"demo_{number}_{tool.name}")


def parse_arguments(text: str) -> JSONObject | None:
    """Return the JSON object at the beginning of a text, or None."""
    start = text.find("{")
    if start < 0 or text[:start].strip(" :,") not in {"", "with", "on"}:
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def guess_arguments(schema: JSONMapping, text: str) -> JSONObject:
    """Return example arguments, or none if the schema is invalid. API clients may send any schema."""
    try:
        return example_arguments(schema, text)
    except (AttributeError, LookupError, TypeError, ValueError):
        return {}


def example_arguments(schema: JSONMapping, text: str) -> JSONObject:
    """Return arguments for the required properties of a schema, derived from a text."""
    properties = schema.get("properties", {})
    # Each name once: repeated names in nested schemas would multiply.
    return {name: example_value(properties.get(name, {}), text) for name in dict.fromkeys(schema.get("required", ()))}


def example_value(schema: JSONMapping, text: str) -> object:
    """Return a value that matches a schema, derived from a text if possible."""
    if "enum" in schema:
        return schema["enum"][0]
    number = _NUMBER.search(text[:MAX_MENTION_POSITION])
    match schema.get("type", "string"):
        case "integer":
            return int(float(number[0])) if number else 1
        case "number":
            return float(number[0]) if number else 1.0
        case "boolean":
            return True
        case "array":
            return [example_value(schema.get("items", {}), text)]
        case "object":
            return example_arguments(schema, text)
        case "null":
            return None
    return text
