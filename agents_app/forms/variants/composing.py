"""From the inputs of variants to their value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.core.exceptions import ValidationError

from agents_app.configuration.conditional import JOINS
from agents_app.forms.members import normalize_lines, parse_json, parse_number, parse_tags
from agents_app.forms.object_field import get_list
from agents_app.forms.tools.knowledge import parse_input
from agents_app.forms.variants.rows import (
    LIST_OPERATORS,
    VALUE_INPUTS,
    VALUELESS_OPERATORS,
    VARIANT_FIELDS,
    VariantRow,
)

EXAMPLES = {"temperature": "0.7", "topP": "0.9", "maxTokens": "1000"}


def submitted_rows(data: Any) -> list[VariantRow]:
    """Return the variants of a form, without those in which nothing is filled in."""
    rows = [
        read_row(data, name, row)
        for name in VARIANT_FIELDS
        for row in dict.fromkeys(get_list(data, f"variant-{name}"))
    ]
    return [row for row in rows if not row.is_blank]


def read_row(data: Any, name: str, row: str) -> VariantRow:
    prefix = f"variant-{name}-{row}"
    columns = [get_list(data, f"{prefix}-{column}") for column in ("field", "operator", "expected")]

    def text(part: str) -> str:
        return normalize_lines(str(data.get(f"{prefix}-{part}") or "")).strip()

    return VariantRow(
        name,
        row,
        {part: text(part) for part in VALUE_INPUTS[name]},
        [key for key in dict.fromkeys(get_list(data, f"{prefix}-keys")) if key],
        text("join") or "AND",
        [(item[0].strip(), item[1], item[2].strip()) for item in zip(*columns, strict=False) if item[0].strip()],
        text("json"),
        text("rules"),
    )


def compose_variants(rows: Sequence[VariantRow], stored: Any) -> tuple[Any, list[str]]:
    """Return the value of the field `conditional`, and the errors, which are also set on their rows.

    Members of a stored variant that have no input stay.
    """
    before = stored or {}
    value = {name: before[name] for name in before if name not in VARIANT_FIELDS}
    errors: list[str] = []
    for name, label in VARIANT_FIELDS.items():
        composed = []
        for position, row in enumerate((row for row in rows if row.field == name), 1):
            try:
                composed.append(merge_variant(stored_variant(before, row), compose_variant(row)))
            except ValidationError as error:
                row.error = " ".join(error.messages)
                errors.append(f"{label}, variant {position}: {row.error}")
        if composed:
            value[name] = composed
        elif name in before and not before[name]:
            value[name] = before[name]
    return value or (None if stored else stored), errors


def merge_variant(stored: Mapping[str, Any], variant: Mapping[str, Any]) -> dict[str, Any]:
    """Return a variant with the stored members that have no input. The same tools stay in their order."""
    before, after = stored.get("value"), variant["value"]
    is_same_list = isinstance(before, list) and isinstance(after, list) and sorted(before) == sorted(after)
    return {**stored, **variant, **({"value": before} if is_same_list else {})}


def stored_variant(stored: Mapping[str, Any], row: VariantRow) -> dict[str, Any]:
    variants = stored.get(row.field) or []
    index = int(row.row) if row.row.isascii() and row.row.isdigit() and len(row.row) < 4 else len(variants)
    return dict(variants[index]) if index < len(variants) else {}


def compose_variant(row: VariantRow) -> dict[str, Any]:
    """Return a variant. Raise ValidationError with all that is wrong."""
    variant: dict[str, Any] = {}
    messages: list[str] = []
    for name, compose_member in (("value", compose_value), ("rules", compose_rules)):
        try:
            variant[name] = compose_member(row)
        except ValidationError as error:
            messages += error.messages
    if messages:
        raise ValidationError(messages, code="invalid")
    return variant


def compose_value(row: VariantRow) -> Any:
    if row.json:
        return parse_json(row.json)
    if row.field == "tools":
        return row.keys
    if row.field == "memory":
        if not row.texts.get("key"):
            raise ValidationError("Choose a memory.", code="required")
        return row.texts["key"]
    return compose_model(row)


def compose_model(row: VariantRow) -> dict[str, Any]:
    provider, name, rest = (row.texts.get(part, "") for part in ("provider", "name", "rest"))
    if not (provider and name):
        raise ValidationError("Enter the provider and the model.", code="required")
    settings = parse_json(rest) if rest else {}
    if not isinstance(settings, dict):
        raise ValidationError('Other settings must be an object, such as {"temperature": 0}.', code="invalid")
    return {"provider": provider, "name": name, **settings, **compose_settings(row)}


def compose_settings(row: VariantRow) -> dict[str, Any]:
    """Return the usual settings of a model. Raise ValidationError for a text that is no number."""
    settings: dict[str, Any] = {}
    for name, label, text in row.setting_inputs:
        try:
            settings |= {name: parse_number(text)} if text else {}
        except ValidationError:
            raise ValidationError(f"{label} must be a number, such as {EXAMPLES[name]}.", code="invalid") from None
    return settings


def compose_rules(row: VariantRow) -> dict[str, Any]:
    if row.rules:
        rules: dict[str, Any] = parse_json(row.rules)
        return rules
    if not row.conditions:
        raise ValidationError("Add a condition, so that the variant holds for some callers.", code="required")
    return {
        "operator": row.join if row.join in JOINS else "AND",
        "conditions": [compose_condition(*condition) for condition in row.conditions],
    }


def compose_condition(name: str, operator: str, text: str) -> dict[str, Any]:
    condition: dict[str, Any] = {"field": name, "operator": operator}
    if operator in VALUELESS_OPERATORS:
        return condition
    value: Any = [parse_input(item) for item in parse_tags(text)] if operator in LIST_OPERATORS else parse_input(text)
    return {**condition, "value": value}


def compose_context_keys(text: str, stored: Sequence[str] | None) -> list[str] | None:
    """Return the claims that count. A text that nobody changed gives the stored ones back."""
    return [*stored] if stored and text == ", ".join(stored) else parse_tags(text) or None
