"""What an agent names by key, and what of it is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from agents_app.registry import Entry, Kind, registry

# The kind of thing that each field of a snapshot names, by wire name.
FIELD_KINDS = {
    "model": Kind.MODEL_PROVIDER,
    "tools": Kind.TOOL,
    "workflows": Kind.WORKFLOW,
    "agents": Kind.AGENT,
    "integrationTools": Kind.INTEGRATION_PROVIDER,
    "inputProcessors": Kind.PROCESSOR,
    "outputProcessors": Kind.PROCESSOR,
    "memory": Kind.MEMORY,
    "scorers": Kind.SCORER,
}


class MissingReference(NamedTuple):
    """Something that an agent names and nothing registered; the agent works without it."""

    field: str
    key: str
    message: str


def referenced_keys(snapshot: Mapping[str, Any]) -> dict[str, list[str]]:
    """The keys that a configuration names, by wire field; fields that name nothing are left out."""
    named = {field: _keys_of_field(field, snapshot.get(field)) for field in FIELD_KINDS}
    return {field: keys for field, keys in named.items() if keys}


def _keys_of_field(field: str, value: Any) -> list[str]:
    if not value:
        return []
    if field == "model":
        keys = [value.get("provider") if isinstance(value, dict) else None]
    elif field == "memory":
        keys = [value]
    elif field in {"inputProcessors", "outputProcessors"}:
        keys = [processor_key(each) for each in value if isinstance(each, dict)]
    else:
        keys = list(value) if isinstance(value, list | dict) else []  # a list of keys, or scorers by key
    return [key for key in keys if isinstance(key, str)]  # a fixture or SQL asks no shape


def processor_key(processor: Mapping[str, Any]) -> Any:
    """What a processor of a configuration is registered as; a text, where somebody asked the shape of it."""
    return processor.get("key", processor.get("id"))


def find_entry(kind: Kind, key: str) -> Entry | None:
    """What is registered under a key; an integration tool is found through its provider."""
    if kind is not Kind.INTEGRATION_PROVIDER:
        return registry.get(kind, key)
    provider, _, tool = key.partition("_")
    entry = registry.get(kind, provider)
    return entry if entry is not None and tool in entry.names else None


def reference_path(field: str, key: str, snapshot: Mapping[str, Any]) -> str:
    """The path at which a configuration names a key: `tools[2]`, `model.provider`, `scorers.tone`."""
    value = snapshot.get(field)
    if field == "model":
        return "model.provider"
    if not isinstance(value, list):
        return field if field == "memory" else f"{field}.{key}"
    keys = [processor_key(each) if isinstance(each, dict) else each for each in value]
    return f"{field}[{keys.index(key)}]"


def find_missing_references(
    references: Mapping[str, Iterable[str]], known_agents: Iterable[str] = ()
) -> list[MissingReference]:
    """A warning for each key that nothing registered and that staff do not keep.

    `known_agents` are the stored agents that the agent may use: those of its owner and of the shared space. Any other
    looks exactly like one that does not exist.
    """
    found = find_unregistered_references(references, known_agents)
    return [warning for warning in found if not registry.is_staff_entry(FIELD_KINDS[warning.field], warning.key)]


def find_unregistered_references(
    references: Mapping[str, Iterable[str]], known_agents: Iterable[str] = ()
) -> list[MissingReference]:
    """The same whatever staff keep: it changes with the code alone."""
    known = set(known_agents)
    return [
        MissingReference(field, key, f"No {FIELD_KINDS[field].value} is registered as '{key}'.")
        for field, keys in references.items()
        for key in keys
        if find_entry(FIELD_KINDS[field], key) is None and not (field == "agents" and key in known)
    ]
