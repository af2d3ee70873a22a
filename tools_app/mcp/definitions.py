"""Definitions of tools, as MCP servers list them. A hash tells whether one changed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from agentcms.wire.canonical import canonical, json_equal, sha256_hex
from agentcms.wire.json_types import JSONMapping, JSONObject, JSONValue
from agentcms.wire.printable_text import printable
from agentcms.wire.property_order import restore_property_order
from agentcms.wire.validation import find_json_faults

MAX_TOOLS = 500  # of one server
MAX_MCP_TOOL_NAME_LENGTH = 128
MAX_TOOL_DESCRIPTION_LENGTH = 20_000
MAX_SCHEMA_LENGTH = 64 * 1024  # characters of JSON
MAX_LISTING_LENGTH = 1024 * 1024  # characters of JSON of all definitions: each process keeps those of all servers
MAX_ACCEPTED, MAX_ACCEPTED_LENGTH = 2 * MAX_TOOLS, 2 * MAX_LISTING_LENGTH  # with the tools that are gone
MAX_REASONS = 20  # why tools are left out
SURPLUS_REASON = "the server has listed too many other tools before. Delete the server and add it again."
HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


@dataclass(frozen=True)
class Definition:
    """The definition of a tool: what a model reads of it, and what the server says of its effects."""

    name: str
    description: str = ""
    schema: JSONMapping = field(default_factory=dict)
    title: str = ""
    annotations: Mapping[str, bool] = field(default_factory=dict)

    @classmethod
    def from_json(cls, name: str, value: JSONMapping) -> Definition:
        return cls(name, value["description"], value["schema"], value["title"], value["annotations"])

    def to_json(self) -> JSONObject:
        return {
            "description": self.description,
            "schema": dict(self.schema),
            "title": self.title,
            "annotations": dict(self.annotations),
        }

    @cached_property
    def hash(self) -> str:
        """A hash of all that a model or a person decides by."""
        return sha256_hex(canonical({"name": self.name, **self.to_json()}))

    @cached_property
    def length(self) -> int:
        """The characters of the definition as JSON."""
        return len(canonical({"name": self.name, **self.to_json()}))

    @property
    def sent_schema(self) -> JSONObject:
        """The schema as models get it: with its type, and without members that are null, which some servers send."""
        members = {name: value for name, value in self.schema.items() if value is not None}
        return restore_property_order({"type": "object", **members})

    @property
    def schema_text(self) -> str:
        """The schema as indented JSON, for pages."""
        return json.dumps(self.schema, indent=2, ensure_ascii=False)

    @property
    def changes_something(self) -> bool:
        """True if the server says that the tool changes or deletes something."""
        destructive = self.annotations.get("destructiveHint")
        return destructive is True or (self.annotations.get("readOnlyHint") is False and destructive is not False)


# The tool that reads resources. It is the same for all servers, and agents get it only where they name it.
RESOURCE_TOOL = Definition(
    "read_resource",
    "Read a resource of this server, such as a file, by its URI. Without a URI, list all resources.",
    {
        "type": "object",
        "properties": {"uri": {"type": "string", "description": "The URI of the resource, as the list has it."}},
    },
    "Read resources",
    {"readOnlyHint": True, "idempotentHint": True},
)


class DefinitionDifference(NamedTuple):
    """A part of a definition that changed."""

    part: str
    before: JSONValue
    after: JSONValue


def find_differences(before: Definition, after: Definition) -> list[DefinitionDifference]:
    """Return the parts in which two definitions of a tool differ."""
    old, new = before.to_json(), after.to_json()
    return [DefinitionDifference(part, old[part], new[part]) for part in old if not json_equal(old[part], new[part])]


def changed_names(tools: Mapping[str, Definition], accepted: Mapping[str, Definition]) -> list[str]:
    """Return the names of the tools whose definition differs from the accepted one."""
    return [name for name, item in tools.items() if item.hash != accepted[name].hash]


class Listing(NamedTuple):
    """The tools that a server listed, and the reasons why others are left out."""

    definitions: dict[str, Definition]
    left_out: list[str]


def parse_listing(tools: Iterable[JSONMapping]) -> Listing:
    """Return the definitions of listed tools, which have wire names. Those that no agent could use are left out."""
    definitions: dict[str, Definition] = {}
    reasons: dict[int, str] = {}  # by the position, because a name may be listed twice
    length = 0
    for position, tool in enumerate(tools):
        name = str(tool.get("name", ""))
        reason = _find_reason(name, tool, definitions)
        if not reason:
            definition = _parse_tool(name, tool)
            length += definition.length
            if length <= MAX_LISTING_LENGTH:
                definitions[name] = definition
                continue
            length -= definition.length
            reason = f"all definitions of a server have at most {MAX_LISTING_LENGTH // 1024:,} kB."
        reasons[position] = left_out_message(name, reason)
    return Listing(definitions, shortened([*reasons.values()]))


def left_out_message(name: str, reason: str) -> str:
    return f"'{printable(name[:MAX_MCP_TOOL_NAME_LENGTH])}' is left out: {reason}"


def shortened(reasons: list[str]) -> list[str]:
    """Return the first reasons, and how many more there are."""
    more = len(reasons) - MAX_REASONS
    return reasons if more <= 0 else [*reasons[:MAX_REASONS], f"{more:,} more tools are left out."]


def without_surplus(listing: Listing, accepted: Mapping[str, Definition]) -> Listing:
    """Return a list without the new tools of a server that has listed too many others before.

    The definitions of tools that are gone are kept, so that one that comes back with another definition is noticed. A
    server that always names other tools would fill the database.
    """
    count, length = len(accepted), sum(definition.length for definition in accepted.values())
    definitions: dict[str, Definition] = {}
    reasons: list[str] = []
    for name, definition in listing.definitions.items():
        if name not in accepted:
            count, length = count + 1, length + definition.length
        if name in accepted or (count <= MAX_ACCEPTED and length <= MAX_ACCEPTED_LENGTH):
            definitions[name] = definition
        else:
            reasons.append(left_out_message(name, SURPLUS_REASON))
    return Listing(definitions, [*listing.left_out, *shortened(reasons)])


def _find_reason(name: str, tool: JSONMapping, known: Mapping[str, Definition]) -> str:
    """Return why a tool cannot be used, or a blank text."""
    if not name or len(name) > MAX_MCP_TOOL_NAME_LENGTH or not name.isprintable() or "/" in name:
        return f"a name has 1 to {MAX_MCP_TOOL_NAME_LENGTH} printable characters other than a slash."
    if name in known:
        return "the server lists the name twice."
    if len(known) >= MAX_TOOLS:
        return f"a server has at most {MAX_TOOLS} tools."
    if len(tool.get("description") or "") > MAX_TOOL_DESCRIPTION_LENGTH:
        return f"its description is longer than {MAX_TOOL_DESCRIPTION_LENGTH:,} characters."
    schema = tool.get("inputSchema")
    if not isinstance(schema, dict) or next(iter(find_json_faults(dict(tool), "")), None):
        return "its definition cannot be stored as JSON."
    if schema.get("type") not in (None, "object") or not isinstance(schema.get("properties"), dict | None):
        return "its schema is not that of an object."
    if len(canonical(schema)) > MAX_SCHEMA_LENGTH:
        return f"its schema is larger than {MAX_SCHEMA_LENGTH // 1024} kB."
    return ""


def _parse_tool(name: str, tool: JSONMapping) -> Definition:
    annotations = tool.get("annotations") or {}
    hints = {hint: annotations[hint] for hint in HINTS if isinstance(annotations.get(hint), bool)}
    title = str(tool.get("title") or annotations.get("title") or "")[:200]
    return Definition(name, tool.get("description") or "", tool["inputSchema"], title, hints)
