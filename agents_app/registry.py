"""What agents may name: tools, workflows, memories and the rest, registered by key in code.

A module `agent_tools.py` in any installed app is imported at start-up; its decorators register:

    @tool(title="Word count", description="Counts the words of a text.")
    def word_count(text: str) -> int: ...
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from django.core.exceptions import ImproperlyConfigured
from pydantic import TypeAdapter

from agents_app.configuration.schema import validate_config

Target = TypeVar("Target", bound=Callable[..., Any])


class Kind(StrEnum):
    """The kinds of things that an agent names by key."""

    TOOL = "tool"
    INTEGRATION_PROVIDER = "integration provider"
    WORKFLOW = "workflow"
    MEMORY = "memory"
    SCORER = "scorer"
    PROCESSOR = "processor"
    MODEL_PROVIDER = "model provider"
    AGENT = "agent"


@dataclass(frozen=True)
class Entry:
    """One registered thing, which agents name by its key or else by its id.

    `schema` is the JSON Schema of what it takes; `names` are the models of a model provider or the
    `toolkit_tool` names of an integration provider.

    `target` is what runs: a function; a Celery task of a workflow; for an integration provider its functions by name;
    for a model provider a function that takes the model's name and settings; for a memory one that makes a capability
    of pydantic-ai; for an agent its configuration.
    """

    kind: Kind
    key: str
    title: str
    description: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    requires_approval: bool = False
    target: Any = None
    source: str = "code"  # read-only here: it changes with the code that registers it
    id: str = ""  # another name that agents may use, where no entry has it as its key


class Registry:
    """Every entry by kind and key."""

    def __init__(self) -> None:
        self._entries: dict[Kind, dict[str, Entry]] = {kind: {} for kind in Kind}
        self._fingerprint = ""
        # What staff keep of a kind, by every name of it; it changes while we run, so it is asked for each time.
        self.staff_entries: dict[Kind, Callable[[], Mapping[str, Entry]]] = {}

    def add(self, entry: Entry) -> Entry:
        """Register an entry; one key of a kind belongs to one thing."""
        known = self._entries[entry.kind].get(entry.key)
        if known is not None and known != entry:
            raise ImproperlyConfigured(
                f"Two things are registered as {entry.kind} '{entry.key}'. Give one another key."
            )
        self._entries[entry.kind][entry.key] = entry
        self._fingerprint = ""
        return entry

    def remove(self, kind: Kind, key: str) -> None:
        self._entries[kind].pop(key, None)
        self._fingerprint = ""

    def get(self, kind: Kind, key: str) -> Entry | None:
        """By key, then by id."""
        entries = self._entries[kind]
        return entries.get(key) or next((entry for entry in entries.values() if key and entry.id == key), None)

    def entries(self, kind: Kind) -> list[Entry]:
        """The entries of a kind, by title."""
        return sorted(self._entries[kind].values(), key=lambda entry: (entry.title.lower(), entry.key))

    def selectable(self, kind: Kind) -> list[Entry]:
        """The entries of a kind and those that staff keep, which replace a registered one of the same key."""
        kept = (
            {entry.key: entry for entry in self.staff_entries[kind]().values()} if kind in self.staff_entries else {}
        )
        return [*(entry for entry in self.entries(kind) if entry.key not in kept), *kept.values()]

    def is_staff_entry(self, kind: Kind, key: str) -> bool:
        """Whether staff keep something under a key or another name of it."""
        return kind in self.staff_entries and key in self.staff_entries[kind]()

    @property
    def fingerprint(self) -> str:
        """Changes with what is registered; part of an agent's ETag, because warnings are part of the answer."""
        if not self._fingerprint:
            lines = sorted(
                f"{kind}:{key}:{entry.id}:{','.join(entry.names)}"
                for kind in Kind
                for key, entry in self._entries[kind].items()
            )
            self._fingerprint = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:8]
        return self._fingerprint


registry = Registry()


def tool(
    key: str = "", *, title: str = "", description: str = "", requires_approval: bool = False, id: str = ""
) -> Callable[[Target], Target]:
    """Register a function as a tool; its signature gives the JSON Schema of its arguments."""
    return _callable_registrar(Kind.TOOL, key, title, description, requires_approval, id)


def workflow(key: str = "", *, title: str = "", description: str = "", id: str = "") -> Callable[[Target], Target]:
    """Register a function or a Celery task as a workflow."""
    return _callable_registrar(Kind.WORKFLOW, key, title, description, id=id)


def scorer(key: str = "", *, title: str = "", description: str = "", id: str = "") -> Callable[[Target], Target]:
    """Register a function that scores an answer between 0 and 1."""
    return _callable_registrar(Kind.SCORER, key, title, description, id=id)


def processor(key: str = "", *, title: str = "", description: str = "", id: str = "") -> Callable[[Target], Target]:
    """Register a function that reads or changes messages before or after the model."""
    return _callable_registrar(Kind.PROCESSOR, key, title, description, id=id)


def code_agent(key: str, **configuration: Any) -> Entry:
    """Register an agent that lives in code: read-only, and usable as a sub-agent. Takes the fields of an agent."""
    fields = validate_config(configuration)
    return registry.add(Entry(Kind.AGENT, key, fields["name"], fields.get("description", ""), target=fields))


def is_task(target: Any) -> bool:
    """Whether this is a Celery task rather than a plain function."""
    return hasattr(target, "apply_async") and hasattr(target, "run")


def _callable_registrar(
    kind: Kind, key: str, title: str, description: str, requires_approval: bool = False, id: str = ""
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
                requires_approval=requires_approval,
                target=target,
                id=id,
            )
        )
        return target

    return register
