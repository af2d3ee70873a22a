"""The variants of an agent in the editor: values for some callers, with the conditions under which they hold.

The names of the inputs, for the variants of a field such as `model`; `row` is a name that no other variant has:

    conditional                     sent by every page that has the variants
    context_keys                    the claims that count, separated by commas
    variant-model                   the name of each variant, in order
    variant-model-<row>-provider, -name, -rest
                                    the value: a model, and its other settings as JSON
    variant-memory-<row>-key, variant-tools-<row>-keys
                                    the value: a registered memory, the chosen tools
    variant-model-<row>-json        the value as JSON, if the inputs cannot show it
    variant-model-<row>-join        AND or OR
    variant-model-<row>-field, -operator, -expected
                                    each condition; one without a field is ignored
    variant-model-<row>-rules       the rules as JSON, if they have groups
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any

from django.core.exceptions import ValidationError

from agentcms.wire.canonical import json_equal
from agents_app.configuration.conditional import JOINS, RULE_OPERATORS
from agents_app.forms.knowledge import parse_input
from agents_app.forms.members import format_json, normalize_lines, parse_json, parse_tags
from agents_app.forms.object_field import get_list
from agents_app.forms.pickers import Option, OptionSource
from agents_app.registry import Kind, registry

VARIANT_FIELDS = {"model": "Model", "memory": "Memory", "tools": "Tools"}
VALUE_INPUTS = {"model": ("provider", "name", "rest"), "memory": ("key",), "tools": ()}
OPERATOR_LABELS = {
    "equals": "is",
    "not_equals": "is not",
    "contains": "contains",
    "not_contains": "does not contain",
    "greater_than": "more than",
    "less_than": "less than",
    "greater_than_or_equal": "at least",
    "less_than_or_equal": "at most",
    "in": "is one of",
    "not_in": "is none of",
    "exists": "is known",
    "not_exists": "is not known",
}
LIST_OPERATORS = ("in", "not_in")
VALUELESS_OPERATORS = ("exists", "not_exists")
NO_RULES = {"operator": "AND", "conditions": []}
NEW_CONDITIONS = 2  # inputs for further conditions
KNOWN_FACTS = ("userId", "roles", "owner")

ConditionTexts = tuple[str, str, str]  # field, operator, text of the value


@dataclass
class VariantRow:
    """A variant as texts of inputs. `json` and `rules` are blank if the other inputs show them."""

    field: str
    row: str
    texts: dict[str, str] = dataclass_field(default_factory=dict)
    keys: list[str] = dataclass_field(default_factory=list)
    join: str = "AND"
    conditions: list[ConditionTexts] = dataclass_field(default_factory=list)
    json: str = ""
    rules: str = ""
    error: str = ""

    @property
    def prefix(self) -> str:
        return f"variant-{self.field}-{self.row}"

    @property
    def is_blank(self) -> bool:
        return not (any(self.texts.values()) or self.keys or self.conditions or self.json or self.rules)

    @property
    def condition_inputs(self) -> list[ConditionTexts]:
        """Return the conditions, and inputs for further ones."""
        return [*self.conditions, *([("", "equals", "")] * NEW_CONDITIONS)]

    @property
    def operators(self) -> list[tuple[str, str]]:
        return [(name, OPERATOR_LABELS[name]) for name in RULE_OPERATORS]


@dataclass(frozen=True)
class VariantGroup:
    """The variants of a field, for the template, and an empty one to fill in."""

    field: str
    label: str
    rows: list[VariantRow]
    blank: VariantRow


# --- from a stored value to inputs


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
        rest = {name: item for name, item in value.items() if name not in ("provider", "name")}
        row.texts = {name: str(value.get(name) or "") for name in ("provider", "name")}
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


# --- from inputs to a value


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
    provider, name, rest = (row.texts.get(part, "") for part in VALUE_INPUTS["model"])
    if not (provider and name):
        raise ValidationError("Enter the provider and the model.", code="required")
    settings = parse_json(rest) if rest else {}
    if not isinstance(settings, dict):
        raise ValidationError('Other settings must be an object, such as {"temperature": 0}.', code="invalid")
    return {"provider": provider, "name": name, **settings}


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


# --- for the form and its template


@dataclass
class VariantInputs:
    """The variants of an agent in the editor."""

    rows: list[VariantRow]
    context_keys: str
    source: OptionSource  # of the tools
    errors: list[str] = dataclass_field(default_factory=list)

    @classmethod
    def stored(cls, value: Any, context_keys: Sequence[str] | None, source: OptionSource) -> VariantInputs:
        return cls(describe(value), ", ".join(context_keys or ()), source)

    @classmethod
    def submitted(cls, data: Any, source: OptionSource) -> VariantInputs:
        return cls(submitted_rows(data), str(data.get("context_keys") or "").strip(), source)

    def compose(self, stored: Any, stored_keys: Sequence[str] | None) -> tuple[Any, list[str] | None]:
        """Return the values of `conditional` and `context_keys`, and set the errors."""
        value, self.errors = compose_variants(self.rows, stored)
        return (stored if self.errors else value), compose_context_keys(self.context_keys, stored_keys)

    @property
    def is_set(self) -> bool:
        return bool(self.rows or self.context_keys)

    @property
    def groups(self) -> list[VariantGroup]:
        """Return the variants by field, each group with an empty one."""
        taken = {row.row for row in self.rows}
        token = next(name for number in range(1, 1000) if (name := f"n{number}") not in taken)
        return [
            VariantGroup(name, label, [row for row in self.rows if row.field == name], VariantRow(name, token))
            for name, label in VARIANT_FIELDS.items()
        ]

    @property
    def fact_names(self) -> list[str]:
        """Return the names of facts and claims to suggest for a condition."""
        used = (name for row in self.rows for name, _, _ in row.conditions)
        return [*dict.fromkeys([*KNOWN_FACTS, *parse_tags(self.context_keys), *used])]

    @property
    def memories(self) -> list[tuple[str, str]]:
        """Return the registered memories, and those that variants name."""
        known = {entry.key: entry.title for entry in registry.entries(Kind.MEMORY)}
        keys = dict.fromkeys(row.texts.get("key", "") for row in self.rows)
        return [*known.items(), *((key, f"{key} (not registered)") for key in keys if key and key not in known)]

    @property
    def tools(self) -> list[Option]:
        """Return the tools that a variant can have: those of any variant first, then the registered ones."""
        keys = [*dict.fromkeys(key for row in self.rows for key in row.keys)]
        return [*self.source.describe(keys), *self.source.registered(keys)]
