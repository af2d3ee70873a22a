"""The order of the properties in JSON Schemas for models, which write an answer in this order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentcms.wire.json_types import JSONMapping, JSONObject

PROPERTIES, REQUIRED = "properties", "required"
MAPS_OF_SCHEMAS = frozenset({PROPERTIES, "patternProperties", "dependentSchemas"})
DEFINITIONS = frozenset({"$defs", "definitions"})
VALUES = frozenset({"const", "enum", "default", "examples"})  # whose members are not keywords


def restore_property_order(schema: JSONMapping) -> JSONObject:
    """Return a schema whose properties stand in the order in which `required` names them, if a database sorted them.

    PostgreSQL sorts the members of stored objects, shorter names first, so a model would give a score before its
    reason. The items of lists keep their order. Properties that are not required follow the others.
    """
    restored: JSONObject = _restore(schema)
    return restored


def _restore(value: object) -> Any:
    if isinstance(value, list):
        return [_restore(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    members = {name: _restore_member(name, item) for name, item in value.items()}
    properties, required = members.get(PROPERTIES), members.get(REQUIRED)
    if isinstance(properties, dict) and isinstance(required, list) and is_sorted_by_database([*properties]):
        names = [name for name in required if isinstance(name, str) and name in properties]
        members[PROPERTIES] = {**{name: properties[name] for name in names}, **properties}
    return members


def _restore_member(name: str, value: object) -> Any:
    if name in VALUES:
        return value
    # Members of these may have the names of keywords.
    if name in MAPS_OF_SCHEMAS | DEFINITIONS and isinstance(value, Mapping):
        return {key: _restore(schema) for key, schema in value.items()}
    return _restore(value)


def is_sorted_by_database(names: list[str]) -> bool:
    """Return whether names stand in the order of PostgreSQL: by length, and then byte by byte."""
    texts = [name.encode(errors="surrogatepass") for name in names]
    return texts == sorted(texts, key=lambda text: (len(text), text))
