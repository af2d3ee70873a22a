"""The registry of what agents can use: tools, workflows, memories and more, registered by key in code.

A module `agent_tools.py` in any installed app is imported at start-up. Its decorators register functions:

    @tool(title="Word count", description="Count the words of a text.")
    def word_count(text: str) -> int: ...
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, TypedDict, TypeVar, Unpack

from django.core.exceptions import ImproperlyConfigured
from pydantic import BaseModel, TypeAdapter

from access_app.role import Role
from agentcms.wire.json_schema import reject_invalid_schema
from agents_app.configuration.background_tasks import background_choice
from agents_app.configuration.schema import validate_config

Target = TypeVar("Target", bound=Callable[..., Any])


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
ApprovalPredicate = Callable[[Mapping[str, Any], Any], Any]


@dataclass(frozen=True)
class Entry:
    """A registered object that agents refer to by key or ID.

    `schema` is the JSON Schema of its input. `names` are the models of a model provider, the `toolkit_tool` names
    of an integration provider, or the keys by which searches of a knowledge base may be filtered.

    `target` is what runs: a function, or the Celery task of a workflow. For an integration provider it is a dict of
    functions by name. For a model provider it is a function of the model's name and settings. For a memory it is a
    function that returns a pydantic-ai capability. For an agent it is its configuration.

    With `at_most_once`, an interrupted tool call is not repeated. The model is told that its outcome is unknown.

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
    schema: Mapping[str, Any] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    requires_approval: bool | ApprovalPredicate = False
    approver: str = Role.EDITOR
    four_eyes: bool = False
    resume_schema: Mapping[str, Any] | None = None
    expires: timedelta | None = None  # None for APPROVAL_DAYS
    at_most_once: bool = False
    background: Mapping[str, Any] | None = None
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
    differences: tuple[tuple[str, Any, Any], ...] = ()  # from the accepted definition: part, before and after
    unavailable_reason: str = ""  # a message for users if the entry cannot be used now

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
        """Register an entry. Raises ImproperlyConfigured if its key belongs to another entry."""
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
        return entries.get(key) or next((entry for entry in entries.values() if key and entry.id == key), None)

    def entries(self, kind: Kind) -> list[Entry]:
        """Return the entries of a kind, sorted by title."""
        return sorted(self._entries[kind].values(), key=lambda entry: (entry.title.lower(), entry.key))

    def selectable(self, kind: Kind) -> list[Entry]:
        """Return the entries of a kind with those of staff, which replace registered entries of the same key."""
        by_staff: dict[str, Entry] = {}
        if kind in self.staff_entries:
            by_staff = {entry.key: entry for entry in self.staff_entries[kind]().values()}
        return [*(entry for entry in self.entries(kind) if entry.key not in by_staff), *by_staff.values()]

    def is_staff_entry(self, kind: Kind, key: str) -> bool:
        """Return whether staff added an entry with this key or ID."""
        return self.find_staff_entry(kind, key) is not None

    def find_staff_entry(self, kind: Kind, key: str) -> Entry | None:
        """Return the entry that staff added with this key or ID, or None."""
        return self.staff_entries_of(kind).get(key)

    def staff_entries_of(self, kind: Kind) -> Mapping[str, Entry]:
        """Return the entries that staff added, by every name of each."""
        return self.staff_entries[kind]() if kind in self.staff_entries else {}

    def staff_revision(self, kind: Kind) -> str:
        """Return a text that changes with the entries of staff of a kind."""
        return self.staff_revisions[kind]() if kind in self.staff_revisions else ""

    def reload_staff_entries(self, kind: Kind) -> None:
        """Read what staff added anew. Entries are otherwise up to a second old."""
        if kind in self.staff_reloads:
            self.staff_reloads[kind]()

    def reload_if_missing(self, kind: Kind, keys: Iterable[str]) -> None:
        """Read what staff added anew if it lacks one of these keys: another process may have stored it just now."""
        if not self.staff_entries_of(kind).keys() >= {*keys}:
            self.reload_staff_entries(kind)

    @property
    def fingerprint(self) -> str:
        """Return a hash of the registered names. It is part of an agent's ETag, as responses include warnings."""
        if not self._fingerprint:
            lines = sorted(
                f"{kind}:{key}:{entry.id}:{','.join(entry.names)}"
                for kind in Kind
                for key, entry in self._entries[kind].items()
            )
            self._fingerprint = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:8]
        return self._fingerprint


registry = Registry()


class ApprovalRules(TypedDict, total=False):
    """The rules of the calls of a tool for which a person is asked."""

    requires_approval: bool | ApprovalPredicate
    approver: str
    four_eyes: bool
    resume_schema: Mapping[str, Any] | type[BaseModel] | None
    expires: timedelta | float | None


def tool(
    key: str = "",
    *,
    title: str = "",
    description: str = "",
    at_most_once: bool = False,
    background: bool | Mapping[str, Any] | None = None,
    ordered: bool = False,
    id: str = "",
    **approval: Unpack[ApprovalRules],
) -> Callable[[Target], Target]:
    """Register a function as a tool. The JSON Schema of its arguments comes from its signature.

    A durable run repeats the call that its process was executing when it stopped, unless the tool is `at_most_once`.

    A person approves each call if `requires_approval` is True. A predicate gets the arguments and the call, as
    `runs_app.calling.current()` returns it; it may be async, and a person is asked if it raises an error. The person
    is an editor, or has the higher role `approver`; with `four_eyes`, it is not who asked for the run. A call on which
    nobody decides expires after `expires`, a duration or seconds. `resume_schema`, a JSON Schema or a pydantic model,
    describes the data that the tool asks for by `current().suspend()`. Raise ImproperlyConfigured for other values.

    With `background`, calls run in the background unless an agent says otherwise: True, or an object with
    `timeout_ms`, `max_retries` and `disposition` ("deferred", "awaited" or "foreground"). The results of an `ordered`
    tool are delivered in the order of the calls.
    """
    flags = EntryFlags(
        requires_approval=approval.get("requires_approval", False),
        approver=_approver_role(approval.get("approver", Role.EDITOR)),
        four_eyes=approval.get("four_eyes", False),
        resume_schema=_resume_schema(approval.get("resume_schema")),
        expires=_approval_duration(approval.get("expires")),
        at_most_once=at_most_once,
        background=background_choice(background),
        ordered=ordered,
    )
    return _callable_registrar(Kind.TOOL, key, title, description, id, **flags)


def _approver_role(approver: str) -> str:
    if approver not in Role.at_least(Role.EDITOR):
        roles = ", ".join(f"'{role}'" for role in Role.at_least(Role.EDITOR))
        raise ImproperlyConfigured(f"The approver of a tool is one of {roles}, not '{approver}'.")
    return Role(approver)


def _resume_schema(schema: Mapping[str, Any] | type[BaseModel] | None) -> Mapping[str, Any] | None:
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        return schema.model_json_schema()
    if schema is None:
        return None
    if isinstance(schema, Mapping):
        try:
            reject_invalid_schema(schema)
        except ValueError as error:
            raise ImproperlyConfigured(f"The resume_schema of a tool is not a JSON Schema: {error}.") from None
        return schema
    raise ImproperlyConfigured("The resume_schema of a tool is a JSON Schema or a pydantic model.")


def _approval_duration(expires: timedelta | float | None) -> timedelta | None:
    duration = timedelta(seconds=expires) if isinstance(expires, int | float) else expires
    if duration is not None and duration <= timedelta(0):
        raise ImproperlyConfigured("The calls of a tool expire after more than 0 seconds.")
    return duration


def workflow(key: str = "", *, title: str = "", description: str = "", id: str = "") -> Callable[[Target], Target]:
    """Register a function or a Celery task as a workflow."""
    return _callable_registrar(Kind.WORKFLOW, key, title, description, id)


def scorer(key: str = "", *, title: str = "", description: str = "", id: str = "") -> Callable[[Target], Target]:
    """Register a function that scores an answer between 0 and 1."""
    return _callable_registrar(Kind.SCORER, key, title, description, id)


def processor(
    key: str = "", *, title: str = "", description: str = "", id: str = "", tool_results: bool = False
) -> Callable[[Target], Target]:
    """Register a function that checks or changes messages before or after the model call.

    With `tool_results`, an input processor also gets each text in the results of tools.
    """
    return _callable_registrar(Kind.PROCESSOR, key, title, description, id, processes_tool_results=tool_results)


def code_agent(key: str, **configuration: Any) -> Entry:
    """Register a read-only agent that others can use as a sub-agent. Takes the fields of a configuration."""
    fields = validate_config(configuration)
    return registry.add(Entry(Kind.AGENT, key, fields["name"], fields.get("description", ""), target=fields))


def is_task(target: Any) -> bool:
    """Return whether a target is a Celery task rather than a plain function."""
    return hasattr(target, "apply_async") and hasattr(target, "run")


class EntryFlags(TypedDict, total=False):
    """The flags of an entry that is a function."""

    requires_approval: bool | ApprovalPredicate
    approver: str
    four_eyes: bool
    resume_schema: Mapping[str, Any] | None
    expires: timedelta | None
    at_most_once: bool
    background: Mapping[str, Any] | None
    ordered: bool
    processes_tool_results: bool


def _callable_registrar(
    kind: Kind, key: str, title: str, description: str, id: str, **flags: Unpack[EntryFlags]
) -> Callable[[Target], Target]:
    def register(target: Target) -> Target:
        name = target.__name__
        registered: Any = target
        function = registered.run if is_task(registered) else registered
        registry.add(
            Entry(
                kind,
                key or name.replace("_", "-"),
                title or name.replace("_", " ").capitalize(),
                description or (function.__doc__ or "").strip(),
                schema=TypeAdapter(function).json_schema(),
                target=target,
                id=id,
                **flags,
            )
        )
        return target

    return register
