"""From the stored value of variants to their inputs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ValidationError

from agentcms.wire.canonical import json_equal
from agents_app.forms.members import format_json, is_number
from agents_app.forms.tools.knowledge import parse_input
from agents_app.forms.variants.composing import compose_rules, compose_value
from agents_app.forms.variants.rows import (
    LIST_OPERATORS,
    NO_RULES,
    SETTING_LABELS,
    VALUELESS_OPERATORS,
    VARIANT_FIELDS,
    ConditionTexts,
    VariantRow,
)


def describe(value: Any) -> list[VariantRow]:
    """Return the inputs of stored variants, which give them back unchanged."""
    return [
        describe_variant(name, str(index), variant)
        for name in VARIANT_FIELDS
        for index, variant in enumerate((value or {}).get(name) or [])
    ]


def describe_variant(name: str, row: str, variant: Mapping[str, Any]) -> VariantRow:
    described = VariantRow(name, row)
    describe_value(described, variant.get("value"))
    rules = variant.get("rules") or NO_RULES
    described.join = str(rules.get("operator", "AND"))
    described.conditions = [*map(describe_condition, rules.get("conditions", ()))]
    if not is_same(compose_rules, described, rules):
        described.join, described.conditions, described.rules = "AND", [], format_json(rules)
    return described


def describe_value(row: VariantRow, value: Any) -> None:
    """Fill the inputs of a value, or the one with its JSON."""
    if row.field == "model" and isinstance(value, dict):
        settings = {name: value[name] for name in SETTING_LABELS if is_number(value.get(name))}
        rest = {name: item for name, item in value.items() if name not in ("provider", "name", *settings)}
        row.texts = {name: str(value.get(name) or "") for name in ("provider", "name")}
        row.texts |= {name: json.dumps(number) for name, number in settings.items()}
        row.texts["rest"] = json.dumps(rest, ensure_ascii=False) if rest else ""
    elif row.field == "memory" and isinstance(value, str):
        row.texts = {"key": value}
    elif row.field == "tools" and isinstance(value, list):
        row.keys = [str(key) for key in value]
    if not is_same(compose_value, row, value):
        row.texts, row.keys, row.json = {}, [], format_json(value)


def describe_condition(condition: Any) -> ConditionTexts:
    if not isinstance(condition, dict) or "conditions" in condition:
        return "", "", ""  # which gives nothing back, so that the rules are shown as JSON
    value, operator = condition.get("value"), str(condition.get("operator"))
    if operator in LIST_OPERATORS and isinstance(value, list):
        text = ", ".join(item if isinstance(item, str) else json.dumps(item) for item in value)
    else:
        text = value if isinstance(value, str) and parse_input(value) == value else json.dumps(value)
    return str(condition.get("field")), operator, "" if operator in VALUELESS_OPERATORS else text


def is_same(compose: Any, row: VariantRow, value: Any) -> bool:
    """Return whether the inputs of a row give a stored value back."""
    try:
        return bool(json_equal(compose(row), value))
    except ValidationError:
        return False
