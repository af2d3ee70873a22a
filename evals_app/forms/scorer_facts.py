"""The configuration of a scorer for readers, under the labels of its form."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from agentcms.wire.json_types import JSONMapping, JSONObject, JSONValue
from agents_app.forms.objects.members import Member, format_json
from evals_app.forms.scorer_settings import ROOT, SETTING_PARTS, SettingsInputs
from evals_app.forms.scorers import TYPE_CHOICES
from evals_app.scorers.changes import differing_fields
from evals_app.scorers.kinds.judges import score_range

SCORER_LABELS = {
    "name": "Name",
    "description": "Description",
    "type": "Type",
    "model": "Model",
    "instructions": "Instructions",
    "scoreRange": "Scores",
    "passThreshold": "Pass threshold",
    "outputSchema": "Answer of the judge (JSON Schema)",
    "presetConfig": "Settings",
}


class ScorerFact(NamedTuple):
    """A part of a configuration."""

    label: str
    text: str


def configuration_facts(snapshot: JSONMapping) -> Iterator[ScorerFact]:
    """Yield the parts of a configuration. What no input of the form shows is JSON."""
    kind = snapshot.get("type")
    for name in in_order_of_labels(snapshot):
        value = snapshot[name]
        parts = SETTING_PARTS.get(str(kind)) if name == "presetConfig" else None
        if parts is not None and isinstance(value, dict) and SettingsInputs.describe(str(kind), value) is not None:
            yield from setting_facts(str(kind), value)
        else:
            yield ScorerFact(SCORER_LABELS.get(name, name), fact_text(name, value))


def setting_facts(kind: str, settings: JSONMapping) -> Iterator[ScorerFact]:
    """Yield the settings of a check, a trajectory or a pipeline that their inputs show."""
    for name, (heading, members) in SETTING_PARTS[kind].items():
        part = settings if name == ROOT else settings.get(name) or {}
        for member in members:
            if member.name in part:
                label = f"{heading}: {member.label}" if heading else member.label
                yield ScorerFact(label, setting_text(member, part[member.name]))


def setting_text(member: Member, value: JSONValue) -> str:
    """Return the value of an input: the label of a choice, the lines of a list, else the value."""
    if label := dict(member.choices).get(json.dumps(value)):
        return label
    if member.kind == "lines" and isinstance(value, list):
        return "\n".join(map(str, value))
    return value if isinstance(value, str) else format_json(value)


def fact_text(name: str, value: JSONValue) -> str:
    """Return the value of a field of the form."""
    if name == "type":
        return type_label(str(value))
    if name == "model" and isinstance(value, dict):
        return " · ".join(str(value[part]) for part in ("provider", "name") if value.get(part))
    if name == "scoreRange" and isinstance(value, dict):
        low, high = score_range({name: value})
        return f"{low:g} to {high:g}"
    return value if isinstance(value, str) else format_json(value)


def type_label(kind: str) -> str:
    """Return the label of a type, or the type itself if this release does not know it."""
    for key, choices in TYPE_CHOICES:
        for choice, label in choices if isinstance(choices, list) else [(key, choices)]:
            if choice == kind:
                return str(label)
    return kind


def in_order_of_labels(names: Iterable[str]) -> list[str]:
    """Return names of a configuration in the order of the form, those without a label at the end."""
    given = [*names]
    return [*(name for name in SCORER_LABELS if name in given), *(name for name in given if name not in SCORER_LABELS)]


def changed_labels(names: Iterable[str]) -> str:
    """Return the labels of the names that a version changed."""
    return ", ".join(SCORER_LABELS.get(name, name) for name in in_order_of_labels(names))


def field_differences(old: JSONObject, new: JSONObject) -> list[JSONObject]:
    """Return the fields in which two configurations differ, with their labels and as JSON texts."""
    return [
        {
            "path": SCORER_LABELS.get(name, name),
            "old": json_text(old, name),
            "new": json_text(new, name),
            "change": number,
        }
        for number, name in enumerate(in_order_of_labels(differing_fields(old, new)), 1)
    ]


def json_text(snapshot: JSONObject, name: str) -> str | None:
    return json.dumps(snapshot[name], ensure_ascii=False, indent=2) if name in snapshot else None
