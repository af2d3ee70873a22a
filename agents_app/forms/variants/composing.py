"""From the inputs of variants to their value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.exceptions import ValidationError

from agentcms.wire.canonical import canonical
from agentcms.wire.json_types import JSONMapping, JSONObject, JSONValue
from agents_app.forms.form_data import FormData
from agents_app.forms.memory.composing import compose_memory_options
from agents_app.forms.objects.field import ObjectInputs, get_submitted_list
from agents_app.forms.objects.members import (
    InputError,
    label_errors,
    normalize_line,
    normalize_lines,
    parse_json,
    parse_number,
    parse_tags,
)
from agents_app.forms.variants.conditions import ConditionGroup
from agents_app.forms.variants.rows import OPTIONS, VALUE_INPUTS, VARIANT_FIELDS, VariantRow

EXAMPLES = {"temperature": "0.7", "topP": "0.9", "maxTokens": "1000"}


def submitted_rows(data: FormData) -> list[VariantRow]:
    """Return the variants of a form, without those in which nothing is filled in."""
    rows = [
        read_variant_row(data, name, row)
        for name in VARIANT_FIELDS
        for row in dict.fromkeys(get_submitted_list(data, f"variant-{name}"))
    ]
    return [row for row in rows if not row.is_blank]


def read_variant_row(data: FormData, name: str, row: str) -> VariantRow:
    prefix = f"variant-{name}-{row}"

    def text(part: str) -> str:
        return normalize_lines(str(data.get(f"{prefix}-{part}") or ""))

    return VariantRow(
        name,
        row,
        {part: text(part) for part in VALUE_INPUTS[name]},
        text("kind"),
        ObjectInputs.from_data((), data, f"{prefix}-rest"),
        [key for key in dict.fromkeys(get_submitted_list(data, f"{prefix}-keys")) if key],
        ConditionGroup.from_data(data, prefix),
        text("json").strip(),
        text("rules").strip(),
    )


def compose_variants(rows: Sequence[VariantRow], stored: JSONValue) -> tuple[Any, list[ValidationError]]:
    """Return the value of the field `conditional`, and the errors, which are also set on their rows.

    Members of a stored variant that have no input stay.
    """
    before = stored or {}
    value = {name: before[name] for name in before if name not in VARIANT_FIELDS}
    errors: list[ValidationError] = []
    for name, label in VARIANT_FIELDS.items():
        composed = []
        for position, row in enumerate((row for row in rows if row.field == name), 1):
            variant = stored_variant(before, row)
            # First: options of a memory that have no input come from it.
            row.stored = variant.get("value")
            try:
                composed.append(merge_variant(variant, compose_variant(row)))
            except ValidationError as error:
                row.errors = [item for item in error.error_list if isinstance(item, InputError)]
                errors += label_errors(f"{label}, variant {position}", error)
        if composed:
            value[name] = composed
        # A stored empty list stays, or a form that nobody changed would have a change.
        elif name in before and not before[name]:
            value[name] = before[name]
    return value or (None if stored else stored), errors


def merge_variant(stored: JSONMapping, variant: JSONMapping) -> JSONObject:
    """Return a variant with the stored members that have no input. The same tools stay in their order."""
    before, after = stored.get("value"), variant["value"]
    # A page sends its checkboxes in the order in which it lists the tools, so another order is not a change.
    is_same_list = isinstance(before, list) and isinstance(after, list) and in_order(before) == in_order(after)
    return {**stored, **variant, **({"value": before} if is_same_list else {})}


def in_order(items: Sequence[JSONValue]) -> list[str]:
    """Return the items as sorted JSON texts: a value typed as JSON may have items of several types."""
    return sorted(map(canonical, items))


def stored_variant(stored: JSONMapping, row: VariantRow) -> JSONObject:
    variants = stored.get(row.field) or []
    # Stored variants have their index as the name of their row. Those that a page adds have other names.
    index = int(row.row) if row.row.isascii() and row.row.isdigit() and len(row.row) < 4 else len(variants)
    return dict(variants[index]) if index < len(variants) else {}


def compose_variant(row: VariantRow) -> JSONObject:
    """Return a variant. Raise ValidationError with all that is wrong."""
    variant: JSONObject = {}
    errors: list[ValidationError] = []
    for name, compose_member in (("value", compose_value), ("rules", compose_rules)):
        try:
            variant[name] = compose_member(row)
        except ValidationError as error:
            errors += error.error_list
    if errors:
        raise ValidationError(errors)
    return variant


def compose_value(row: VariantRow) -> object:
    if row.json:
        return parse_at(row, "json", "Value", row.json)
    if row.field == "tools":
        return row.keys
    return compose_memory(row) if row.field == "memory" else compose_model(row)


def parse_at(row: VariantRow, part: str, label: str, text: str) -> JSONValue:
    """Return the value of the JSON text in an input. Raise ValidationError with the errors of that input."""
    try:
        return parse_json(text)
    except ValidationError as error:
        raise ValidationError([*InputError.build(label, error, f"{row.prefix}-{part}")]) from None


def compose_memory(row: VariantRow) -> object:
    if row.kind == OPTIONS:
        return compose_memory_options(row.stored, row.texts, f"{row.prefix}-")
    if not row.texts.get("key"):
        raise row.input_error("key", "Choose a memory.")
    return row.texts["key"]


def compose_model(row: VariantRow) -> JSONObject:
    provider, name = (normalize_line(row.texts.get(part, "")).strip() for part in ("provider", "name"))
    if not (provider and name):
        raise row.input_error("name" if provider else "provider", "Enter the provider and the model.")
    model = {"provider": provider, "name": name, **compose_settings(row)}
    rest = row.rest.compose()
    row.rest.errors = [
        InputError(f"“{entry.name}” is set twice. Remove one of them.", f"{row.rest.prefix}-row-name:{position}")
        for position, entry in enumerate(row.rest.rows)
        if entry.name in model
    ]
    if row.rest.errors:
        raise ValidationError([*row.rest.errors])
    return {**model, **rest}


def compose_settings(row: VariantRow) -> JSONObject:
    """Return the usual settings of a model. Raise ValidationError with an error for each text that is not a number."""
    settings: JSONObject = {}
    errors: list[ValidationError] = []
    for name, label, text, _ in row.setting_inputs:
        try:
            settings |= {name: parse_number(text)} if text.strip() else {}
        except ValidationError:
            errors.append(row.input_error(name, f"{label} must be a number, such as {EXAMPLES[name]}."))
    if errors:
        raise ValidationError(errors)
    return settings


def compose_rules(row: VariantRow) -> JSONObject:
    if row.rules:
        rules: JSONObject = parse_at(row, "rules", "Conditions", row.rules)
        return rules
    if not row.conditions.items:
        raise row.input_error("field", "Add a condition, so that the variant holds for some callers.")
    return row.conditions.compose()


def compose_context_keys(text: str, stored: Sequence[str] | None) -> list[str] | None:
    """Return the claims that count. A text that nobody changed gives the stored ones back."""
    # As the input sends them: on one line, and without outer spaces.
    if stored is not None and text == normalize_line(", ".join(stored)).strip():
        return [*stored]
    return parse_tags(text) or None
