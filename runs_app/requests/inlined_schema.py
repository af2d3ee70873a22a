"""Schemas without references. The library that describes answers to models only replaces those to `$defs`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentcms.wire.json_types import JSONMapping, JSONObject
from agentcms.wire.property_order import DEFINITIONS, MAPS_OF_SCHEMAS, VALUES
from runs_app.requests.tool_schemas import find_target

ANNOTATIONS = frozenset({"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"})


class SchemaRecursive(ValueError):
    """A schema that refers to itself. The message is the reference."""


def inline_references(schema: JSONMapping) -> JSONObject:
    """Return a schema in which each reference is replaced by its target. Raise SchemaRecursive.

    The schema is one that `reject_large_schema` has accepted.
    """
    inlined: JSONObject = _inline(schema, schema, ())
    return inlined


def _inline(value: object, root: JSONMapping, path: tuple[str, ...]) -> Any:
    """Return a part of a schema. `path` are the references that lead to it."""
    if isinstance(value, list):
        return [_inline(item, root, path) for item in value]
    if not isinstance(value, Mapping):
        return value
    members: JSONObject = {}
    for name, item in value.items():
        if name in VALUES:
            members[name] = item
        elif name in MAPS_OF_SCHEMAS and isinstance(item, Mapping):
            members[name] = {key: _inline(schema, root, path) for key, schema in item.items()}
        elif name not in DEFINITIONS:
            members[name] = _inline(item, root, path)
    reference = members.get("$ref")
    return _with_target(members, reference, root, path) if isinstance(reference, str) else members


def _with_target(members: JSONObject, reference: str, root: JSONMapping, path: tuple[str, ...]) -> Any:
    """Return a schema with the target of its reference in place of it."""
    if reference in path:
        raise SchemaRecursive(reference)
    target = _inline(find_target(root, reference), root, (*path, reference))
    others = {name: item for name, item in members.items() if name != "$ref"}
    if others.keys() <= ANNOTATIONS and isinstance(target, dict):
        return {**target, **others}
    return {**others, "allOf": [target, *others.get("allOf", ())]}
