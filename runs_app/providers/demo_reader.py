"""The answers that the demo model finds in a message of a person to a tool that waits for data.

Imports pydantic-ai, which is heavy. Import this module only where an agent is built.
"""

from __future__ import annotations

import json
import re

from pydantic_ai.models.function import AgentInfo, DeltaToolCall

from agentcms.wire.json_types import JSONMapping, JSONObject, JSONValue
from runs_app.providers.demo_calls import MAX_MENTION_POSITION, example_value, mention_pattern

# As the reader of answers names its tools, and ends its prompt.
ANSWER, NO_ANSWER = "answer", "no_answer"
BEFORE_THE_MESSAGE = "\nThe user says: "

_WORD = re.compile(r"\w+")
_DIGIT = re.compile(r"\d")
TRUTH_BY_WORD = dict.fromkeys(("yes", "ok", "okay", "sure", "confirm", "confirmed", "true"), True)
TRUTH_BY_WORD |= dict.fromkeys(("no", "not", "never", "false"), False)


def read_answer_of_person(prompt: str, info: AgentInfo) -> DeltaToolCall | None:
    """Return the call that answers the reader of answers, or None for any other request."""
    tools = {tool.name: tool for tool in info.output_tools}
    if {ANSWER, NO_ANSWER} - tools.keys():
        return None
    text = prompt.rpartition(BEFORE_THE_MESSAGE)[2][:MAX_MENTION_POSITION]
    data = read_data(tools[ANSWER].parameters_json_schema, text)
    name, arguments = (NO_ANSWER, JSONObject()) if data is None else (ANSWER, data)
    return DeltaToolCall(name, json.dumps(arguments), tool_call_id=f"demo_{name}")


def read_data(schema: JSONMapping, text: str) -> JSONObject | None:
    """Return what a text says about the required properties of a schema, or None if it leaves one out.

    Of a schema that requires none, the first property is read.
    """
    try:
        properties = schema.get("properties", {})
        names = schema.get("required") or [*properties][:1]
        data = {name: read_value(properties.get(name, {}), text) for name in names}
    except (AttributeError, LookupError, TypeError, ValueError):  # code may register any schema
        return None
    return None if None in data.values() else data


def read_value(schema: JSONMapping, text: str) -> JSONValue:
    """Return the value that a text gives for a schema, or None."""
    if "enum" in schema:
        return next((value for value in schema["enum"] if mention_pattern(str(value)).search(text)), None)
    match schema.get("type"):
        case "boolean":
            words = (word.lower() for word in _WORD.findall(text))
            return next((TRUTH_BY_WORD[word] for word in words if word in TRUTH_BY_WORD), None)
        case "integer" | "number" if not _DIGIT.search(text):
            return None
    return example_value(schema, text)
