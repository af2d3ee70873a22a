"""The tools of MCP servers that an agent uses, by server and name.

    {"office": {"tools": {"add": {"description": "Add prices.", "requireApproval": true, "hash": "9f2c…"}}}}

`hash` is that of the definition with which the agent was saved. A server without `tools` stands for all of them,
which are listed by name when the agent is saved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from agentcms.wire.json_types import JSONMapping, JSONObject, JSONValue
from agents_app.registry import Entry, Kind, registry

MCP_CLIENTS = "mcpClients"
ALL_TOOLS = "*"
NO_TOOL_MESSAGE = "No MCP tool is registered as '{key}'."
NO_TOOLS_MESSAGE = "No MCP server with the ID '{server}' lists tools."
CHANGED_MESSAGE = "The MCP tool '{key}' changed on its server. Accept the change to use it."
SAME_NAME_MESSAGE = (
    "The MCP tool '{key}' has the same name for models as '{other}'. Change the prefix of one of their servers."
)


class SelectedTool(NamedTuple):
    """A tool that an agent selects on a server."""

    server: str
    name: str
    options: JSONMapping

    @property
    def key(self) -> str:
        """The key of its registry entry. The key of a server contains no underscore."""
        return f"{self.server}_{self.name}"

    @property
    def hash(self) -> str:
        return str(self.options.get("hash") or "")

    @property
    def reference(self) -> str:
        """The key with the hash, as a version stores it among its references."""
        return f"{self.key}@{self.hash}" if self.hash else self.key


def selected_tools(value: object) -> Iterator[SelectedTool]:
    """Yield the tools of a configured value. A server without `tools` yields one with the name `*`."""
    for server, choice in value.items() if isinstance(value, dict) else ():
        tools = choice.get("tools") if isinstance(choice, dict) else None
        if tools is None:
            yield SelectedTool(server, ALL_TOOLS, {})
        for name, options in tools.items() if isinstance(tools, dict) else ():
            yield SelectedTool(server, name, options if isinstance(options, dict) else {})


def without_hashes(value: JSONValue) -> JSONObject:
    """Return the options of each tool of a configured value by key, without the hash of its definition."""
    return {
        tool.key: {name: option for name, option in tool.options.items() if name != "hash"}
        for tool in selected_tools(value)
    }


def split_reference(reference: str) -> tuple[str, str]:
    """Return the key and the hash of a reference. A name may contain an `@`, a hash never does."""
    key, separator, digest = reference.rpartition("@")
    is_hash = bool(separator) and len(digest) == 64 and digest.isalnum()
    return (key, digest) if is_hash else (reference, "")


def find_tool(key: str, owner_id: str) -> Entry | None:
    """Return the entry of a tool that agents of this owner may use, or None."""
    entry = registry.find_staff_entry(Kind.MCP_TOOL, key)
    return entry if entry is not None and entry.is_usable_by(owner_id) else None


def server_tools(server: str, owner_id: str) -> dict[str, Entry]:
    """Return the tools of a server that agents of this owner may use, by name."""
    prefix = f"{server}_"
    return {
        key.removeprefix(prefix): entry
        for key, entry in registry.staff_entries_of(Kind.MCP_TOOL).items()
        if key.startswith(prefix) and entry.is_usable_by(owner_id)
    }


def all_tools(server: str, owner_id: str) -> list[Entry]:
    """Return the tools that `{"office": {}}` stands for: those that an agent gets without naming them."""
    return [entry for entry in server_tools(server, owner_id).values() if not entry.is_opt_in]


def find_problem(reference: str, owner_id: str) -> str:
    """Return why an agent of this owner cannot use a tool, or a blank text."""
    key, digest = split_reference(reference)
    if key.endswith(f"_{ALL_TOOLS}"):
        server = key.removesuffix(f"_{ALL_TOOLS}")
        reasons = [tool.unavailable_reason for tool in all_tools(server, owner_id)]
        return "" if "" in reasons else next(iter(reasons), NO_TOOLS_MESSAGE.format(server=server))
    entry = find_tool(key, owner_id)
    if entry is None:
        return NO_TOOL_MESSAGE.format(key=key)
    if entry.unavailable_reason:
        return entry.unavailable_reason
    return "" if is_accepted(entry, digest) else CHANGED_MESSAGE.format(key=key)


def find_same_names(references: Iterable[str], owner_id: str) -> dict[str, str]:
    """Return a message for each tool that has the name of another, by key: servers may share a prefix.

    An agent gets the first of them by key, as `usable_entries` has them.
    """
    key_by_name: dict[str, str] = {}
    messages = {}
    for reference in sorted(references):
        key = split_reference(reference)[0]
        entry = find_tool(key, owner_id)
        # The agent does not get this tool, so that its name is free for another one.
        if entry is None or find_problem(reference, owner_id):
            continue
        other = key_by_name.setdefault(entry.tool_name, key)
        if other != key:
            messages[key] = SAME_NAME_MESSAGE.format(key=key, other=other)
    return messages


def is_accepted(entry: Entry, digest: str) -> bool:
    """Return whether an agent that was saved with a definition of this hash may use the one that the server lists.

    The first definition that a server lists counts for agents without a hash alone: a server that is deleted and added
    again under its key has other first definitions.
    """
    if entry.definition_hash == digest:
        return True
    return entry.definition_hash == entry.accepted_hash and (not digest or entry.is_accepted_for_all)


def complete_fields(fields: JSONObject, owner_id: str) -> JSONObject:
    """Return validated fields of a configuration, with `mcp_clients` completed if it is among them."""
    if "mcp_clients" not in fields:
        return fields
    return {**fields, "mcp_clients": complete(fields["mcp_clients"], owner_id)}


def complete(value: JSONValue, owner_id: str) -> object:
    """Return a validated value with the tools of each server listed by name, and the hash of each definition.

    A hash that is missing becomes that of the accepted definition, so that nobody accepts a change without a look.
    """
    if not value:
        return value
    if any(not tool.hash for tool in selected_tools(value)):
        registry.reload_staff_entries(Kind.MCP_TOOL)  # a server may have been listed just now
    return {server: _complete_server(server, choice, owner_id) for server, choice in value.items()}


def _complete_server(server: str, choice: JSONObject, owner_id: str) -> JSONObject:
    known, tools = server_tools(server, owner_id), choice.get("tools")
    if tools is None:
        # Not those that may be opted into only: nobody chose them by choosing the server.
        tools = {name: {} for name, entry in known.items() if not (entry.unavailable_reason or entry.is_opt_in)}
        if not tools:
            return choice  # a server that is added, listed or enabled later has these tools
    if not known:
        return choice
    return {**choice, "tools": {name: _with_hash(options, known.get(name)) for name, options in tools.items()}}


def _with_hash(options: JSONObject, entry: Entry | None) -> JSONObject:
    if options.get("hash") or entry is None or not entry.accepted_hash:
        return options
    return {**options, "hash": entry.accepted_hash}


def usable_entries(value: object, owner_id: str) -> Iterator[tuple[str, Entry | str]]:
    """Yield the key of each selected tool with its entry, or with the reason why the agent runs without it.

    They are sorted, because not all databases keep the order of the stored value.
    """
    for tool in sorted(selected_tools(value), key=lambda tool: tool.key):
        if tool.name == ALL_TOOLS:
            entries = all_tools(tool.server, owner_id)
            yield from ((entry.key, find_problem(entry.key, owner_id) or entry) for entry in entries)
            if not entries:
                yield tool.key, find_problem(tool.key, owner_id)
            continue
        entry_or_none = find_tool(tool.key, owner_id)
        problem = find_problem(tool.reference, owner_id)
        if problem or entry_or_none is None:
            yield tool.key, problem
        else:
            yield tool.key, with_options(entry_or_none, tool.options)


def with_options(entry: Entry, options: JSONMapping) -> Entry:
    """Return an entry with the description of the agent. An agent can add the need for approval, not remove it."""
    return replace(
        entry,
        description=options.get("description") or entry.description,
        requires_approval=entry.requires_approval or options.get("requireApproval") is True,
    )
