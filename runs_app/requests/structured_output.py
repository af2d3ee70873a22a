"""Validation of `structuredOutput`, the JSON Schema of the answer of a run."""

from __future__ import annotations

import json

from agentcms.wire.json_schema import SchemaUnusable, reject_invalid_schema, reject_mixed_properties
from agentcms.wire.json_types import JSONObject
from agentcms.wire.validation import find_json_faults
from agents_app.configuration.schema import ConfigError, Issue
from runs_app.requests.inlined_schema import SchemaRecursive, inline_references
from runs_app.requests.tool_schemas import find_target, reject_large_schema

STRUCTURED_OUTPUT = "structuredOutput"
SCHEMA_PATH = f"{STRUCTURED_OUTPUT}.schema"
MAX_SCHEMA_KB = 64  # as JSON in UTF-8

NOT_OBJECT_MESSAGE = 'This must be a JSON Schema of an object: {"type": "object", "properties": {…}}.'
RECURSIVE_MESSAGE = (
    "The definition {reference} refers to itself, which is not supported. Write out as many levels as you need."
)
MODEL_MESSAGES = {
    "model": "The model comes from the version of the agent. Omit this.",
    "instructions": "The instructions come from the version of the agent. Omit this.",
}


def parse_structured_output(value: object) -> JSONObject | None:
    """Return `{"schema"}` of a body, or None without one. Raise ConfigError with the paths of what is invalid."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise ConfigError([Issue(STRUCTURED_OUTPUT, "This must be an object with a schema.")])
    if issues := [Issue(*fault) for fault in find_json_faults(value, STRUCTURED_OUTPUT)]:
        raise ConfigError(issues)
    issues = [Issue(f"{STRUCTURED_OUTPUT}.{name}", text) for name, text in MODEL_MESSAGES.items() if value.get(name)]
    schema = value.get("schema")
    if not isinstance(schema, dict) or schema.get("type") != "object":
        issues.append(Issue(SCHEMA_PATH, NOT_OBJECT_MESSAGE))
    elif len(json.dumps(schema, ensure_ascii=False).encode()) > MAX_SCHEMA_KB * 1024:
        issues.append(Issue(SCHEMA_PATH, f"The schema may have {MAX_SCHEMA_KB} KB."))
    else:
        issues += schema_faults(schema)
    if issues:
        raise ConfigError(issues)
    return {"schema": schema}


def schema_faults(schema: JSONObject) -> list[Issue]:
    """Return the issues of a schema that no answer could be validated against."""
    try:
        reject_invalid_schema(schema)
    except ValueError as error:
        return [Issue(SCHEMA_PATH, f"This is not a JSON Schema: {str(error)[:300]}.")]
    if not all(reference.startswith("#/") for reference in references(schema)):
        return [Issue(SCHEMA_PATH, 'Only references within the schema are supported, such as "#/$defs/Address".')]
    missing = [reference for reference in references(schema) if find_target(schema, reference) is None]
    if missing:
        return [Issue(SCHEMA_PATH, f"The schema refers to {missing[0][:300]}, which is not part of it.")]
    reject_large_schema(schema, SCHEMA_PATH)
    try:
        reject_mixed_properties(schema)
        # The first check leaves out unknown members, and so the parts of them that references lead to.
        reject_invalid_schema(inline_references(schema))
    except SchemaUnusable as error:
        return [Issue(SCHEMA_PATH, str(error))]
    except SchemaRecursive as error:
        return [Issue(SCHEMA_PATH, RECURSIVE_MESSAGE.format(reference=str(error)[:300]))]
    except ValueError as error:
        return [Issue(SCHEMA_PATH, f"A reference leads to what is not a JSON Schema: {str(error)[:300]}.")]
    return []


def references(value: object) -> list[str]:
    """Return the targets of all references in a schema."""
    if isinstance(value, list):
        return [target for item in value for target in references(item)]
    if not isinstance(value, dict):
        return []
    own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
    return own + [target for item in value.values() for target in references(item)]
