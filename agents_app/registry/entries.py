"""The entries of the registry by kind and key, with those that staff add."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from access_app.role import Role
from agentcms.wire.json_types import JSONMapping, JSONValue


class Kind(StrEnum):
    """The kinds of registry entries."""

    TOOL = "tool"
    MCP_TOOL = "MCP tool"
    KNOWLEDGE = "knowledge base"
    ACP_AGENT = "ACP agent"
    INTEGRATION_PROVIDER = "integration provider"
    WORKFLOW = "workflow"
    MEMORY = "memory"
    SCORER = "scorer"
    PROCESSOR = "processor"
    MODEL_PROVIDER = "model provider"
    AGENT = "agent"


# Decides whether a person must approve a call: (arguments, `runs_app.calling.ToolCall`) → bool, or an awaitable of it.
ApprovalPredicate = Callable[[JSONMapping, Any], Any]


@dataclass(frozen=True)
class Entry:
    """A registered object that agents refer to by key or ID.

    `schema` is the JSON Schema of its input. `names` are the models of a model provider, the `toolkit_tool` names
    of an integration provider, or the keys by which searches of a knowledge base may be filtered.

    `target` is what runs: a function, or the Celery task of a workflow. For an integration provider it is a dict of
    functions by name. For a model provider it is a function of the model's name and settings. For a memory it is a
    function that returns a pydantic-ai capability. For an agent it is its configuration.

    With `at_most_once`, an interrupted tool call is not repeated. The model reads that its outcome is unknown.

    A tool from outside of this application has a JSON Schema in place of a signature, and `make` builds it from its
    key and entry. Only agents of its owner may use it, or all if the owner is blank. An agent uses it while its
    `definition_hash` is the accepted one, or the one that the agent was saved with.

    Agents that use all tools of a server get one with `is_opt_in` only where they name it.

    With `requires_approval`, a person decides each tool call, or each for which the predicate returns True. The person
    has at least the role `approver`, and with `four_eyes` did not ask for the run. Nobody decides after `expires`.
    `resume_schema` is the JSON Schema of the data for which a tool asks that suspends itself.

    `background` says, under wire names, how calls of a tool run in the background; None leaves that to agents. With
    `ordered`, the results of such calls are delivered in the order of the calls.

    With `processes_tool_results`, an input processor gets the results of tools too, not only the words of people.
    """

    kind: Kind
    key: str
    title: str
    description: str = ""
    schema: JSONMapping = field(default_factory=dict)
    names: tuple[str, ...] = ()
    requires_approval: bool | ApprovalPredicate = False
    approver: str = Role.EDITOR
    four_eyes: bool = False
    resume_schema: JSONMapping | None = None
    expires: timedelta | None = None  # None for APPROVAL_DAYS
    at_most_once: bool = False
    background: JSONMapping | None = None
    ordered: bool = False
    processes_tool_results: bool = False
    target: Any = None
    source: str = "code"  # entries from code cannot be changed in the admin
    id: str = ""  # an alias for the key; another entry with this key has precedence
    make: Callable[[str, Entry], Any] | None = None
    make_agent: Callable[[Entry], Any] | None = None  # builds the agent of a child run
    tool_name: str = ""  # for models, if it is not the key
    server_title: str = ""  # for people, of a tool of an MCP server
    owner_id: str = ""
    definition_hash: str = ""
    accepted_hash: str = ""
    is_accepted_for_all: bool = False  # by a person; the first definition of a tool is accepted by nobody
    is_opt_in: bool = False
    differences: tuple[
        tuple[str, JSONValue, JSONValue], ...
    ] = ()  # from the accepted definition: part, before and after
    unavailable_reason: str = ""  # a message for users if the entry cannot be used now

    def is_usable_by(self, owner_id: str | None) -> bool:
        """Return whether agents of an owner may use the entry. All may use one without an owner."""
        return self.owner_id in ("", owner_id)

    @property
    def argument_names(self) -> tuple[str, ...]:
        """The parameters of a processor that an agent may set: all but the first, which is the text."""
        return tuple(self.schema.get("properties", {}))[1:]


class Registry:
    """The registered entries by kind and key, with those that staff add."""

    def __init__(self) -> None:
        self._entries: dict[Kind, dict[str, Entry]] = {kind: {} for kind in Kind}
        self._fingerprint = ""
        # Entries added by staff, by every name of each; a function, because they change while the server runs.
        self.staff_entries: dict[Kind, Callable[[], Mapping[str, Entry]]] = {}
        self.staff_revisions: dict[Kind, Callable[[], str]] = {}  # texts that change with the entries
        self.staff_reloads: dict[Kind, Callable[[], None]] = {}  # read entries that another process stored just now

    def add(self, entry: Entry) -> Entry:
        """Register an entry. Raise ImproperlyConfigured if its key belongs to another entry."""
        existing = self._entries[entry.kind].get(entry.key)
        if existing is not None and existing != entry:
            raise ImproperlyConfigured(
                f"The key '{entry.key}' is registered twice as {entry.kind}. Give one of them another key."
            )
        self._entries[entry.kind][entry.key] = entry
        self._fingerprint = ""
        return entry

    def remove(self, kind: Kind, key: str) -> None:
        self._entries[kind].pop(key, None)
        self._fingerprint = ""

    def get(self, kind: Kind, key: str) -> Entry | None:
        """Return the entry with this key, or else with this ID, or None."""
        entries = self._entries[kind]
        # Most entries have no ID, and a blank key must find none of them.
        return entries.get(key) or next((entry for entry in entries.values() if key and entry.id == key), None)

    def entries(self, kind: Kind) -> list[Entry]:
        """Return the entries of a kind, sorted by title."""
        return sorted(self._entries[kind].values(), key=lambda entry: (entry.title.lower(), entry.key))

    def selectable(self, kind: Kind, owner_ids: Container[str | None] | None = None) -> list[Entry]:
        """Return the entries of a kind with those of staff, which replace registered entries of the same key.

        With `owner_ids`, those of staff for other owners are left out, and replace nothing.
        """
        by_staff = {
            entry.key: entry
            for entry in self.staff_entries_of(kind).values()
            if owner_ids is None or entry.owner_id in owner_ids
        }
        return [*(entry for entry in self.entries(kind) if entry.key not in by_staff), *by_staff.values()]

    def find_staff_entry(self, kind: Kind, key: str) -> Entry | None:
        """Return the entry that staff added with this key or ID, or None."""
        return self.staff_entries_of(kind).get(key)

    def find_usable(self, kind: Kind, key: str, owner_id: str | None) -> Entry | None:
        """Return the entry with this key that agents of an owner may use, or None.

        One that staff added replaces the registered entry of the same key, as in `selectable`, for those who may use
        it.
        """
        entries = (self.find_staff_entry(kind, key), self.get(kind, key))
        return next((entry for entry in entries if entry is not None and entry.is_usable_by(owner_id)), None)

    def staff_entries_of(self, kind: Kind) -> Mapping[str, Entry]:
        """Return the entries that staff added, by every name of each."""
        return self.staff_entries[kind]() if kind in self.staff_entries else {}

    def staff_revision(self, kind: Kind) -> str:
        """Return a text that changes with the entries of staff of a kind."""
        return self.staff_revisions[kind]() if kind in self.staff_revisions else ""

    def reload_staff_entries(self, kind: Kind) -> None:
        """Read again what staff added. Entries are otherwise up to a second old."""
        if kind in self.staff_reloads:
            self.staff_reloads[kind]()

    def reload_if_missing(self, kind: Kind, keys: Iterable[str]) -> None:
        """Read again what staff added if it lacks one of these keys: another process may have stored it just now."""
        if not self.staff_entries_of(kind).keys() >= {*keys}:
            self.reload_staff_entries(kind)

    @property
    def fingerprint(self) -> str:
        """Return a hash of the registered names. It is part of an agent's ETag, as responses include warnings."""
        if not self._fingerprint:
            # Sorted: all processes must agree, and the order of registration depends on the order of imports.
            lines = sorted(
                f"{kind}:{key}:{entry.id}:{','.join(entry.names)}"
                for kind in Kind
                for key, entry in self._entries[kind].items()
            )
            self._fingerprint = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:8]
        return self._fingerprint


registry = Registry()
