"""A form field for a JSON object: inputs for known members, a row for each other member, or all as JSON.

The names of the inputs, for a field `metadata`:

    metadata                the JSON text, if the field is edited as JSON
    metadata-view           "json" or "fields"; without it, the field is edited as JSON if there is a JSON text
    metadata-<member>       the text of a known member; blank if it is not set
    metadata-row-name, metadata-row-kind, metadata-row-value
                            name, kind and text of each other member; a row without a name is ignored
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django import forms
from django.core.exceptions import ValidationError

from agentcms.wire.json_types import JSONMapping, JSONObject
from agents_app.forms.fields import StrictJSONField
from agents_app.forms.form_data import FormData
from agents_app.forms.objects.members import (
    InputError,
    Member,
    format_input_value,
    format_json,
    is_plain_name,
    normalize_lines,
    parse_input_value,
    texts_at,
    texts_by_target,
)

ROW_KINDS = {
    "text": "Text",
    "number": "Number",
    "true": "Yes",
    "false": "No",
    "lines": "List of texts",
    "json": "JSON",
}


class OtherMember(NamedTuple):
    """A member without an input of its own: name, kind of its value, and the text of the value."""

    name: str
    kind: str
    text: str

    @classmethod
    def describe(cls, name: str, value: object) -> OtherMember:
        texts = ((kind, format_input_value(kind, value)) for kind in ROW_KINDS)
        return next(cls(name, kind, text) for kind, text in texts if text is not None)


class SetMember(NamedTuple):
    """A member that is set, with the name of its input and the position of its row."""

    name: str
    label: str
    kind: str
    text: str
    input: str
    position: int = 0


@dataclass
class ObjectInputs:
    """The texts of an object in the inputs of a form."""

    members: Sequence[Member]
    texts: dict[str, str] = field(default_factory=dict)
    rows: list[OtherMember] = field(default_factory=list)
    prefix: str = field(default="", compare=False)  # of the names of the inputs
    errors: list[InputError] = field(default_factory=list, compare=False)

    @classmethod
    def describe(cls, members: Sequence[Member], value: JSONMapping) -> ObjectInputs | None:
        """Return the inputs that give an object back unchanged, or None if some name cannot be shown in an input."""
        texts = {
            member.name: text
            for member in members
            if member.name in value and (text := member.format(value[member.name])) is not None
        }
        rest = {name: value[name] for name in sorted(value) if name not in texts}
        if not all(map(is_plain_name, rest)):
            return None
        try:
            return cls(members, texts, [OtherMember.describe(name, item) for name, item in rest.items()])
        except StopIteration:  # no kind of input gives some value back
            return None

    @classmethod
    def from_data(cls, members: Sequence[Member], data: FormData, prefix: str) -> ObjectInputs:
        texts = {member.name: normalize_lines(data.get(f"{prefix}-{member.name}") or "") for member in members}
        # A form made by hand may have columns of different lengths.
        columns = (get_submitted_list(data, f"{prefix}-row-{column}") for column in ("name", "kind", "value"))
        rows = [
            OtherMember(name, kind, normalize_lines(text)) for name, kind, text in zip(*columns, strict=False) if name
        ]
        return cls(members, {name: text for name, text in texts.items() if text.strip()}, rows, prefix)

    def compose(self) -> JSONObject:
        """Return the object.

        Raise ValidationError, and set the errors, with the name of the member in each message.
        """
        value: JSONObject = {}
        self.errors = []
        for entry in self._entries():
            if entry.name in value:
                target = f"{self.prefix}-row-name:{entry.position}"
                self.errors.append(InputError(f"{entry.label} is set twice. Remove one of them.", target))
                continue
            try:
                value[entry.name] = parse_input_value(entry.kind, entry.text)
            except ValidationError as error:
                value[entry.name] = None  # so that a second member of this name is reported too
                self.errors += InputError.build(entry.label, error, entry.input, entry.position)
        if self.errors:
            raise ValidationError([*self.errors])
        return value

    def _entries(self) -> Iterable[SetMember]:
        """Yield the members that are set."""
        for member in self.members:
            if member.name in self.texts:
                text = self.texts[member.name]
                yield SetMember(member.name, member.label, member.kind, text, f"{self.prefix}-{member.name}")
        for position, row in enumerate(self.rows):
            kind = row.kind if row.kind in ROW_KINDS else "json"
            yield SetMember(row.name, f"“{row.name}”", kind, row.text, f"{self.prefix}-row-value", position)

    # --- for the template

    @property
    def fields(self) -> list[tuple[Member, str, str]]:
        """Return the members with an input of their own, each with its text and its error."""
        return [
            (member, self.texts.get(member.name, ""), texts_at(self.errors, f"{self.prefix}-{member.name}"))
            for member in self.members
        ]

    @property
    def is_used(self) -> bool:
        """Return whether an input has a text or an error."""
        return bool(self.rows) or any(text or error for _, text, error in self.fields)

    @property
    def rows_with_errors(self) -> list[tuple[OtherMember, str, str]]:
        """Return the other members, each with the error of its name and that of its value."""
        name, value = f"{self.prefix}-row-name", f"{self.prefix}-row-value"
        texts = texts_by_target(self.errors)  # once, because a form may have thousands of rows
        return [
            (row, texts.get(f"{name}:{position}", ""), texts.get(f"{value}:{position}", ""))
            for position, row in enumerate(self.rows)
        ]

    @property
    def kinds(self) -> dict[str, str]:
        return ROW_KINDS

    @property
    def blank(self) -> OtherMember:
        return OtherMember("", "text", "")


def get_submitted_list(data: FormData, name: str) -> list[str]:
    """Return all values of a name in submitted data, which is a dict in some callers."""
    if hasattr(data, "getlist"):
        return list(data.getlist(name))
    value = data.get(name, [])
    return list(value) if isinstance(value, list | tuple) else [value]


def is_json_view(data: FormData, name: str) -> bool:
    """Return whether a field was submitted as JSON."""
    views = get_submitted_list(data, f"{name}-view")
    return views[-1] == "json" if views else name in data


class ObjectWidget(forms.Widget):
    """A widget that reads either the JSON text or the inputs of an object. Templates render it."""

    def __init__(self, members: Sequence[Member], attrs: dict[str, Any] | None = None) -> None:
        super().__init__(attrs)
        self.members = members

    def value_from_datadict(self, data: Any, files: Any, name: str) -> object:
        return data.get(name) if is_json_view(data, name) else ObjectInputs.from_data(self.members, data, name)


class ObjectField(StrictJSONField):
    """A JSON object that is edited by inputs or as JSON."""

    def __init__(self, *, members: Sequence[Member] = (), **options: Any) -> None:
        self.members = members
        super().__init__(**{"required": False, "widget": ObjectWidget(members), **options})

    def to_python(self, value: object) -> Any:
        return value.compose() if isinstance(value, ObjectInputs) else super().to_python(value)

    def describe(self, value: object) -> ObjectInputs | None:
        """Return the inputs of a value, or None if only JSON can show it."""
        if isinstance(value, ObjectInputs):
            return value
        return ObjectInputs.describe(self.members, value) if isinstance(value, dict) else None


@dataclass(frozen=True)
class StructuredValue:
    """The value of a field that is edited by inputs or as JSON, for the template."""

    name: str
    id: str
    label: str
    inputs: Any  # of the field, or None if it is edited as JSON
    json_text: str
    has_inputs: bool = True  # False if only JSON can show the value

    @property
    def is_set(self) -> bool:
        return self.json_text not in ("", "{}", "[]", "null")

    @classmethod
    def build(cls, bound: forms.BoundField, view: str = "") -> StructuredValue:
        """Return the value of a bound field, in another view than it was submitted in if `view` says so."""
        form_field: Any = bound.field
        value = convert(form_field, bound.data if bound.form.is_bound else bound.initial, view)
        inputs = None if isinstance(value, str) else form_field.describe(value)
        text = value if isinstance(value, str) else format_blank_or_json(stored_value(form_field, value))
        return cls(
            bound.html_name,
            bound.auto_id,
            str(bound.label),
            inputs,
            text,
            inputs is not None or isinstance(value, str),
        )


def convert(form_field: Any, value: Any, view: str) -> object:
    """Return a submitted value for another view, JSON text or a value. Invalid input stays as it is."""
    try:
        parsed = form_field.to_python(value) if view else value
    except ValidationError:
        return value
    return format_json(parsed) if view == "json" else parsed


def format_blank_or_json(value: object) -> str:
    """Return a value as JSON text. Nothing is a blank text, which is saved as nothing."""
    return "" if value is None else format_json(value)


def stored_value(form_field: Any, value: Any) -> object:
    """Return the value of inputs as far as they are valid."""
    try:
        return form_field.to_python(value)
    except ValidationError:
        return form_field.empty()
