"""From the stored value of variants to their inputs."""

from __future__ import annotations

import json
from typing import Any

from django.core.exceptions import ValidationError

from agentcms.wire.canonical import json_equal
from agentcms.wire.json_types import JSONMapping, JSONValue
from agents_app.forms.memory.inputs import texts_of
from agents_app.forms.objects.field import ObjectInputs
from agents_app.forms.objects.members import format_json, is_number, normalize_line
from agents_app.forms.variants.composing import compose_rules, compose_value
from agents_app.forms.variants.conditions import ConditionGroup
from agents_app.forms.variants.rows import NO_RULES, OPTIONS, SETTING_LABELS, VARIANT_FIELDS, VariantRow


def describe_variants(value: JSONValue) -> list[VariantRow]:
    """Return the inputs of stored variants, which give them back unchanged."""
    return [
        describe_variant(name, str(index), variant)
        for name in VARIANT_FIELDS
        for index, variant in enumerate((value or {}).get(name) or [])
    ]


def describe_variant(name: str, row: str, variant: JSONMapping) -> VariantRow:
    value, rules = variant.get("value"), variant.get("rules") or NO_RULES
    described = VariantRow(name, row, stored=value)
    describe_value(described, value)
    described.conditions = ConditionGroup.describe(rules, described.prefix)
    # Inputs change line breaks and outer spaces, so rules with such values are shown as JSON.
    if not is_same(compose_rules, described, rules):
        described.conditions, described.rules = ConditionGroup(described.prefix), format_json(rules)
    return described


def describe_value(row: VariantRow, value: object) -> None:
    """Fill the inputs of a value, or the one with its JSON."""
    if row.field == "model" and isinstance(value, dict):
        describe_model(row, value)
    elif row.field == "memory" and isinstance(value, dict):
        row.kind, row.texts = OPTIONS, texts_of(value)
    elif row.field == "memory" and isinstance(value, str):
        row.texts = {"key": normalize_line(value)}
    elif row.field == "tools" and isinstance(value, list):
        row.keys = [text for key in value if (text := normalize_line(str(key)))]
    if not is_same(compose_value, row, value):
        row.texts, row.kind, row.rest, row.keys = {}, "", ObjectInputs(()), []
        row.json = format_json(value)


def describe_model(row: VariantRow, value: JSONMapping) -> None:
    settings = {name: value[name] for name in SETTING_LABELS if is_number(value.get(name))}
    row.texts = {name: str(value.get(name) or "") for name in ("provider", "name")}
    row.texts |= {name: json.dumps(number) for name, number in settings.items()}
    rest = {name: item for name, item in value.items() if name not in row.texts}
    row.rest = ObjectInputs.describe((), rest) or ObjectInputs(())


def is_same(compose: Any, row: VariantRow, value: JSONValue) -> bool:
    """Return whether the inputs of a row give a stored value back."""
    try:
        return bool(json_equal(compose(row), value))
    except ValidationError:
        return False
