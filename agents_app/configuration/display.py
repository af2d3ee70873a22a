"""Read-only display of a configuration: one section per field that is set."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from agentcms.wire.canonical import text_or_json
from agentcms.wire.json_types import JSONMapping, JSONValue
from agents_app.configuration.field_labels import FIELD_LABELS
from agents_app.configuration.references import FIELD_KINDS, MissingReference, find_entry
from agents_app.configuration.variables import declared_variables

FACT_FIELDS = ("model", "memory", "conditional")  # whose names are words, and no keys of the team
MAX_DISPLAYED_FACTS = 100  # an object with more members is shown as JSON


class ReferencedKey(NamedTuple):
    """A key in a configuration. The title is blank if it is unknown. `missing` says why it is, or is blank."""

    key: str
    title: str
    missing: str


class ConfigSection(NamedTuple):
    """A field that is set. `kind` selects the template: text, words, keys, facts, members or json."""

    field: str
    label: str
    kind: str
    value: JSONValue

    @property
    def is_long(self) -> bool:
        """Return True for a value that needs the whole width of the page."""
        return self.kind in ("text", "json")


def config_sections(
    snapshot: JSONMapping,
    missing_references: Iterable[MissingReference] = (),
    agent_names: Mapping[str, str] | None = None,
) -> list[ConfigSection]:
    """Return the sections of a configuration in wire names, with missing references marked.

    `agent_names` are the names of stored sub-agents.
    """
    missing = {(reference.field, reference.key): reference.state for reference in missing_references}
    names = agent_names or {}
    return [
        build_config_section(field, snapshot[field], missing, names)
        for field in FIELD_LABELS
        if is_set(snapshot, field)
    ]


def build_config_section(
    field: str, value: JSONValue, missing: Mapping[tuple[str, str], str], agent_names: Mapping[str, str]
) -> ConfigSection:
    if isinstance(value, str):
        return ConfigSection(field, FIELD_LABELS[field], "text" if field == "instructions" else "words", value)
    # Context keys: names of claims, which refer to no entry.
    if isinstance(value, list) and field not in FIELD_KINDS and all(isinstance(item, str) for item in value):
        return ConfigSection(field, FIELD_LABELS[field], "words", ", ".join(value))
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        names = agent_names if field == "agents" else {}
        keys = [build_referenced_key(field, key, missing, names.get(key, "")) for key in value]
        return ConfigSection(field, FIELD_LABELS[field], "keys", keys)
    if field == "model":
        value = {"provider": value.get("provider"), **value}  # the provider first
    facts = [*(FACTS_BY_FIELD.get(field) or member_facts)(value)] if isinstance(value, dict) else []
    if 0 < len(facts) <= MAX_DISPLAYED_FACTS:
        return ConfigSection(field, FIELD_LABELS[field], "facts" if field in FACT_FIELDS else "members", facts)
    return ConfigSection(field, FIELD_LABELS[field], "json", json.dumps(value, ensure_ascii=False, indent=2))


def variant_title(index: int | None, count: int) -> str:
    """Return the name of the chosen variant of a field, of so many."""
    return "no variant" if index is None else f"variant {index + 1} of {count}"


def variant_facts(value: JSONMapping) -> Iterator[tuple[str, str]]:
    """Yield the field and number of each variant, and its value with its rules."""
    for field, variants in value.items():
        for number, variant in enumerate(variants or (), 1):
            label = FIELD_LABELS.get(field, field)
            yield (
                f"{label} {number}",
                f"{variant_value_text(variant.get('value'))}, if {rules_text(variant.get('rules') or {})}",
            )


def variant_value_text(value: object) -> str:
    """Return the value of a variant in a few words."""
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, dict) and {"provider", "name"} <= value.keys():
        rest = {name: item for name, item in value.items() if name not in ("provider", "name")}
        settings = f" {json.dumps(rest, ensure_ascii=False)}" if rest else ""
        return f"{value['provider']}/{value['name']}{settings}"
    return text_or_json(value)


def rules_text(rules: JSONMapping) -> str:
    """Return the conditions of a variant in words."""
    if "conditions" not in rules:
        operator = str(rules.get("operator")).replace("_", " ")
        expected = f" {json.dumps(rules['value'], ensure_ascii=False)}" if "value" in rules else ""
        return f"{rules.get('field')} {operator}{expected}"
    texts = [
        f"({rules_text(item)})" if "conditions" in item else rules_text(item) for item in rules.get("conditions", ())
    ]
    return (" and " if rules.get("operator") == "AND" else " or ").join(texts)


def member_facts(value: JSONValue, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path and the value of each member, in words. The options of a memory have no prefix."""
    for name, item in value.items():
        inner = f"{path}.{name}" if path else name
        # Not the parts of a JSON Schema, which is only read as a whole.
        if isinstance(item, dict) and item and name != "schema":
            yield from member_facts(item, inner)
        else:
            yield inner.removeprefix("options."), member_text(item)


def member_text(value: object) -> str:
    """Return the value of a member: texts as they are, lists of texts with commas, and others as JSON."""
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return text_or_json(value)


def variable_facts(value: JSONMapping) -> Iterator[tuple[str, str]]:
    """Yield the name of each declared variable, and its type, default and description."""
    for variable in declared_variables({"requestContextSchema": value}):
        words = [" or ".join(variable.types) or "any type", "required" if variable.is_required else "optional"]
        if variable.default is not None:
            words.append(f"default {json.dumps(variable.default, ensure_ascii=False)}")
        yield variable.name, ": ".join(filter(None, [", ".join(words), variable.description]))


def scorer_facts(value: JSONMapping) -> Iterator[tuple[str, str]]:
    """Yield the key of each scorer, and which answers it scores."""
    for key, scorer in value.items():
        sampling = (scorer or {}).get("sampling") or {}
        if sampling.get("type") == "count":
            yield key, f"One in every {sampling.get('count')} answers"
        elif sampling.get("type") == "ratio":
            yield key, f"{sampling.get('rate', 0) * 100:g} % of the answers"
        else:
            yield key, "Every answer"


def build_referenced_key(field: str, key: str, missing: Mapping[tuple[str, str], str], name: str) -> ReferencedKey:
    entry = find_entry(FIELD_KINDS[field], key)
    return ReferencedKey(key, entry.title if entry else name, missing.get((field, key), ""))


def is_set(snapshot: JSONMapping, field: str) -> bool:
    """Return whether a configuration has a value in a field. False is one."""
    return snapshot.get(field) is False or bool(snapshot.get(field))


def unset_labels(snapshot: JSONMapping) -> list[str]:
    """Return the labels of the fields that are not set."""
    return [label for field, label in FIELD_LABELS.items() if not is_set(snapshot, field)]


FACTS_BY_FIELD: dict[str, Callable[[JSONMapping], Iterator[tuple[str, str]]]] = {
    "conditional": variant_facts,
    "requestContextSchema": variable_facts,
    "scorers": scorer_facts,
}
