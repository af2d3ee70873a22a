"""The size of the schemas of client tools once their references are replaced, as some models require."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from agentcms.wire.json_types import JSONMapping
from agentcms.wire.names import join_path
from agentcms.wire.property_order import DEFINITIONS
from agents_app.configuration.schema import ConfigError, Issue

MAX_SCHEMAS_LENGTH = 256 * 1024  # characters of JSON of all tools of a call, with every $ref replaced
MAX_SCHEMA_DEPTH = 100  # levels, with every $ref replaced

TOO_LARGE_MESSAGE = (
    f"With this tool, the schemas of all tools have more than {MAX_SCHEMAS_LENGTH // 1024} KB or {MAX_SCHEMA_DEPTH} "
    "levels once each $ref is replaced. Refer to large definitions from fewer places, or send fewer tools."
)

ONE_TOO_LARGE_MESSAGE = (
    f"The schema has more than {MAX_SCHEMAS_LENGTH // 1024} KB or {MAX_SCHEMA_DEPTH} levels once each $ref is "
    "replaced. Refer to large definitions from fewer places."
)


class SchemaTooLarge(Exception):
    """A schema that exceeds the maximum. The rest of it is not read."""


def reject_large_schemas(tools: Iterable[JSONMapping]) -> None:
    """Raise ConfigError with the path of the tool whose schema makes those of a call too large together."""
    remaining = MAX_SCHEMAS_LENGTH
    for tool in tools:
        try:
            remaining = ExpandedSchema(tool["schema"], remaining).count()
        except SchemaTooLarge:
            raise ConfigError([Issue(join_path("clientTools", tool["name"]), TOO_LARGE_MESSAGE)]) from None


def reject_large_schema(schema: JSONMapping, path: str) -> None:
    """Raise ConfigError with the path of a schema that is too large once its references are replaced."""
    try:
        ExpandedSchema(schema, MAX_SCHEMAS_LENGTH).count()
    except SchemaTooLarge:
        raise ConfigError([Issue(path, ONE_TOO_LARGE_MESSAGE)]) from None


@dataclass
class ExpandedSchema:
    """A schema whose characters are counted as if each reference were replaced by its target.

    References that lead back to themselves are counted once in each path, because no model can replace them.
    """

    root: JSONMapping
    remaining: int  # characters

    def count(self) -> int:
        """Return the characters that remain. Raise SchemaTooLarge if none do."""
        for name, value in self.root.items():
            self.spend(len(name) + 4)
            if name in DEFINITIONS:
                self.count_value(value, None, 1)
            else:
                self.count_value(value, (), 1)
        self.count_target(self.root.get("$ref"), (), 1)
        return self.remaining

    def count_value(self, value: object, path: tuple[str, ...] | None, depth: int) -> None:
        """Count a value. `path` are the references that lead to it, or None to follow no references."""
        if depth > MAX_SCHEMA_DEPTH:
            raise SchemaTooLarge
        if isinstance(value, dict):
            self.spend(2)
            for name, item in value.items():
                self.spend(len(name) + 4)
                self.count_value(item, path, depth + 1)
            self.count_target(value.get("$ref"), path, depth)
        elif isinstance(value, list):
            self.spend(2)
            for item in value:
                self.count_value(item, path, depth + 1)
        else:
            self.spend(len(value) + 3 if isinstance(value, str) else len(str(value)) + 1)

    def count_target(self, reference: object, path: tuple[str, ...] | None, depth: int) -> None:
        if path is None or not isinstance(reference, str) or reference in path:
            return
        target = find_target(self.root, reference)
        if target is not None:
            self.count_value(target, (*path, reference), depth + 1)

    def spend(self, length: int) -> None:
        self.remaining -= length
        if self.remaining < 0:
            raise SchemaTooLarge


def find_target(schema: JSONMapping, reference: str) -> object:
    """Return the part of a schema that a reference such as `#/$defs/name` names, or None."""
    names = [unquote(name).replace("~1", "/").replace("~0", "~") for name in reference.split("/")]
    if names[0] != "#":
        return None
    node: Any = schema
    for position, name in enumerate(names[1:], 1):
        if isinstance(node, list) and name.isdecimal() and int(name[:9]) < len(node):
            node = node[int(name[:9])]
        elif isinstance(node, dict):
            # The name of a definition may contain a slash that is not escaped.
            rest = "/".join(names[position:])
            if position == 2 and rest in node:
                return node[rest]
            node = node.get(name)
        else:
            return None
    return node
