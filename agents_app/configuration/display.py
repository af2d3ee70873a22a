"""A configuration as it is read: what is set, field by field, in the order in which an agent is read."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from agents_app.configuration.references import FIELD_KINDS, MissingReference
from agents_app.registry import registry

FIELD_LABELS = {
    "name": "Name",
    "description": "Description",
    "instructions": "Instructions",
    "model": "Model",
    "tools": "Tools",
    "defaultOptions": "Default options",
    "workflows": "Workflows",
    "agents": "Sub-agents",
    "integrationTools": "Integration tools",
    "inputProcessors": "Input processors",
    "outputProcessors": "Output processors",
    "memory": "Memory",
    "scorers": "Scorers",
    "metadata": "Metadata",
}


class ReferencedKey(NamedTuple):
    """Something that is named by key; the title is blank where nobody registered one."""

    key: str
    title: str
    is_missing: bool


class ConfigSection(NamedTuple):
    """One field that is set; its kind says how it is shown: text, words, keys, facts or json."""

    field: str
    label: str
    kind: str
    value: Any


def config_sections(snapshot: Mapping[str, Any], warned: Iterable[MissingReference] = ()) -> list[ConfigSection]:
    """What a configuration says, under its wire names; `warned` are the references that are broken."""
    missing = {(warning.field, warning.key) for warning in warned}
    return [build_section(field, snapshot[field], missing) for field in FIELD_LABELS if snapshot.get(field)]


def build_section(field: str, value: Any, missing: Collection[tuple[str, str]]) -> ConfigSection:
    if isinstance(value, str):
        return ConfigSection(field, FIELD_LABELS[field], "text" if field == "instructions" else "words", value)
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ConfigSection(
            field, FIELD_LABELS[field], "keys", [build_referenced_key(field, key, missing) for key in value]
        )
    if field == "model" and not any(isinstance(each, dict | list) for each in value.values()):
        first = {"provider": value.get("provider"), **value}
        facts = [(name, each if isinstance(each, str) else json.dumps(each)) for name, each in first.items()]
        return ConfigSection(field, FIELD_LABELS[field], "facts", facts)
    return ConfigSection(field, FIELD_LABELS[field], "json", json.dumps(value, ensure_ascii=False, indent=2))


def build_referenced_key(field: str, key: str, missing: Collection[tuple[str, str]]) -> ReferencedKey:
    entry = registry.get(FIELD_KINDS[field], key)
    return ReferencedKey(key, entry.title if entry else "", (field, key) in missing)


def unset_labels(snapshot: Mapping[str, Any]) -> list[str]:
    """The labels of the fields of which there is nothing to read."""
    return [label for field, label in FIELD_LABELS.items() if not snapshot[field]]
