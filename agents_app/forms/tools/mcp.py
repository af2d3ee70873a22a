"""The tools of MCP servers in the editor: a list of checkboxes for each server.

The names of the inputs:

    mcp_clients             sent by every page that has the list
    mcp-tool                the key of each selected tool
    mcp-approval            the key of each tool whose calls need approval
    mcp-accept              the key of each changed tool whose new definition is accepted
    mcp-hash-<key>          the hash of the definition that the page showed
    mcp-search              the words of the search, which is not stored
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, replace

from agentcms.wire.json_types import JSONMapping, JSONObject, JSONValue
from agents_app.configuration.mcp_clients import ALL_TOOLS, SelectedTool, find_problem, find_same_names, selected_tools
from agents_app.forms.form_data import FormData
from agents_app.forms.objects.field import get_submitted_list
from agents_app.forms.tools.definition_difference import PartDifference, part_differences
from agents_app.forms.tools.listed_rows import ListedRows, find_listed_keys
from agents_app.registry import Entry, Kind, registry

MAX_SEARCHED = 500  # characters of a description
MAX_UNSELECTED_TOOLS = 200  # in the list; each takes 2 kB of the page

is_hash = re.compile(r"[0-9a-f]{64}").fullmatch


@dataclass(frozen=True)
class SelectableTool:
    """A tool in the list. `problem` says why the agent runs without it, if it is selected."""

    key: str
    name: str
    entry: Entry | None
    is_selected: bool
    needs_approval: bool
    problem: str
    same_name: str = ""  # a message if another selected tool has its name

    @property
    def is_changed(self) -> bool:
        entry = self.entry
        return bool(self.problem and entry and entry.definition_hash and not entry.unavailable_reason)

    @property
    def is_gone(self) -> bool:
        """True if the server no longer lists the tool."""
        return self.is_selected and (self.entry is None or not self.entry.definition_hash)

    @property
    def has_approval_choice(self) -> bool:
        """True if the agent may add the need for approval: the tool is known, and its server does not ask already."""
        return self.entry is not None and not self.entry.requires_approval

    @property
    def differences(self) -> list[PartDifference]:
        """The parts that changed since the definition was accepted."""
        return [*part_differences(self.entry)] if self.entry and self.is_changed else []

    @property
    def search_text(self) -> str:
        """The words by which the search finds the tool, in lower case."""
        return tool_search_text(self.key, self.entry)

    @property
    def schema_text(self) -> str:
        return json.dumps(self.entry.schema, indent=2, ensure_ascii=False) if self.entry else ""


@dataclass(frozen=True)
class ServerRows:
    """A server with those of its tools that are in the list. `tool_count` is the number of all its tools."""

    key: str
    tools: list[SelectableTool]
    tool_count: int

    @property
    def title(self) -> str:
        """The name of the server, or its key if no tool of it is known."""
        titles = (tool.entry.server_title for tool in self.tools if tool.entry)
        return next(filter(None, titles), self.key)

    @property
    def selected_count(self) -> int:
        return sum(tool.is_selected for tool in self.tools)

    @property
    def has_problem(self) -> bool:
        return any(tool.is_selected and (tool.problem or tool.same_name) for tool in self.tools)


def build_tool_list(value: object, owner_id: str, query: str = "") -> ListedRows[ServerRows]:
    """Return the tools that a value names, and the first that agents of this owner may use and that match a query.

    The servers of selected tools come first.
    """
    selected = {tool.key: tool for tool in selected_tools(value)}
    entries = {
        key: entry
        for key, entry in registry.staff_entries_of(Kind.MCP_TOOL).items()
        if entry.is_usable_by(owner_id) and (key in selected or not entry.unavailable_reason)
    }
    keys = sorted({*entries, *selected})
    listed = find_listed_keys(
        keys, selected, query, MAX_UNSELECTED_TOOLS, lambda key: tool_search_text(key, entries.get(key))
    )
    same_names = find_same_names((tool.reference for tool in selected.values()), owner_id)
    servers: dict[str, list[SelectableTool]] = {}
    for key in listed.rows:
        row = tool_row(key, entries.get(key), selected.get(key), owner_id)
        servers.setdefault(server_of(key), []).append(replace(row, same_name=same_names.get(key, "")))
    counts = Counter(map(server_of, keys))
    rows = [ServerRows(server, tools, counts[server]) for server, tools in servers.items()]
    # Among many servers, nobody would find the few that an agent uses.
    return listed.with_rows(sorted(rows, key=lambda row: row.selected_count == 0))


def server_of(key: str) -> str:
    return key.partition("_")[0]


def tool_search_text(key: str, entry: Entry | None) -> str:
    """Return the text of a tool that a search looks at, in lower case."""
    texts = [key]
    if entry:
        texts += [entry.server_title, entry.title, entry.description[:MAX_SEARCHED]]
    return " ".join(texts).lower()


def tool_row(key: str, entry: Entry | None, selected: SelectedTool | None, owner_id: str) -> SelectableTool:
    problem = find_problem(selected.reference if selected else key, owner_id)
    asks = selected is not None and selected.options.get("requireApproval") is True
    return SelectableTool(key, key.partition("_")[2], entry, selected is not None, asks, problem)


def compose_selection(data: FormData, base: JSONValue) -> JSONObject | None:
    """Return the value that a page sent, with the stored options that have no input."""
    stored = {tool.key: tool for tool in selected_tools(base)}
    servers: JSONObject = base if isinstance(base, dict) else {}
    approved, accepted = {*get_submitted_list(data, "mcp-approval")}, {*get_submitted_list(data, "mcp-accept")}
    # A stored server without tools has no row, so it stays, or a form that nobody changed would have a change.
    value: JSONObject = {key: {**choice, "tools": {}} for key, choice in servers.items() if choice.get("tools") == {}}
    # The input for a key, which a page without scripts has, may be blank.
    selected = dict.fromkeys(filter(None, get_submitted_list(data, "mcp-tool")))
    for key in selected:
        # A stored key is not divided: the API accepts an underscore in the key of a server that does not exist.
        tool = stored.get(key)
        server, name = (tool.server, tool.name) if tool else key.partition("_")[::2]
        known = servers.get(server, {})
        if f"{server}_{ALL_TOOLS}" in selected:  # the tool, too, is one of all
            value[server] = known
            continue
        before = tool.options if tool else {}
        # The stored hash stays until somebody accepts the new definition.
        sent = data.get(f"mcp-hash-{key}", "") if tool is None or key in accepted else ""
        choice = value.setdefault(server, {**known, "tools": {}})
        choice["tools"][name] = compose_options(before, sent, needs_approval=key in approved)
    return value or (None if servers else base)  # an empty object stays, as null does


def compose_options(before: JSONMapping, sent_hash: str, *, needs_approval: bool) -> JSONObject:
    """Return the options of a tool. A hash that the page showed replaces the stored one."""
    options = dict(before)
    if needs_approval:
        options["requireApproval"] = True
    elif options.get("requireApproval") is True:
        del options["requireApproval"]
    return {**options, "hash": sent_hash} if is_hash(sent_hash) else options
