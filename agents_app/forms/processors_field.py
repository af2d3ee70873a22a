"""A form field for a list of processors: a row for each, with inputs for the arguments of its function.

The names of the inputs, for a field `input_processors`:

    input_processors                      the JSON text, if the field is edited as JSON
    input_processors-view                 as in `objects.field`
    input_processors-item                 `<row>:<member>:<key>` for each processor in order; the member is key or id
    input_processors-add                  the key of a processor to add at the end; only without scripts
    input_processors-<row>-position       a number that changes the order; only without scripts
    input_processors-<row>-<member>…      arguments and other members, as in `objects.field`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from agentcms.wire.json_types import JSONObject
from agents_app.configuration.references import processor_key
from agents_app.forms.fields import StrictJSONField
from agents_app.forms.form_data import FormData
from agents_app.forms.objects.field import ObjectInputs, get_submitted_list, is_json_view
from agents_app.forms.objects.members import Member, is_plain_name, label_errors
from agents_app.forms.objects.schema import property_members
from agents_app.forms.ordering import sort_by_position
from agents_app.registry import Entry, Kind, registry

NEW_ROW = "__row__"  # replaced by a number when a script adds the row


def argument_members(entry: Entry | None) -> list[Member]:
    """Return the inputs for the arguments of a processor: the parameters of its function after the text."""
    if entry is None or not entry.argument_names:
        return []
    names = {*entry.argument_names}
    defaults = {name: entry.schema["properties"][name].get("default") for name in names}
    return [
        replace(member, help="" if defaults[member.name] is None else f"Default: {defaults[member.name]}")
        for member in property_members(entry.schema, entry.schema)
        if member.name in names
    ]


@dataclass(frozen=True)
class ProcessorRow:
    """A processor of an agent in the form. `member` is the name under which its key is stored."""

    row: str
    member: str
    key: str
    entry: Entry | None
    inputs: ObjectInputs

    @classmethod
    def describe(cls, row: str, processor: object) -> ProcessorRow | None:
        """Return the row that gives a processor back unchanged, or None if it needs JSON."""
        if not isinstance(processor, dict):
            return None
        key = processor_key(processor)
        if not isinstance(key, str) or not is_plain_name(key):
            return None
        # Both names are valid, and a processor keeps the one that it was stored with.
        member = "key" if "key" in processor else "id"
        entry = registry.get(Kind.PROCESSOR, key)
        rest = {name: value for name, value in processor.items() if name != member}
        inputs = ObjectInputs.describe(argument_members(entry), rest)
        return cls(row, member, key, entry, inputs) if inputs else None

    @classmethod
    def from_data(cls, data: FormData, name: str, item: str) -> ProcessorRow:
        row, _, rest = item.partition(":")
        member, _, key = rest.partition(":")
        entry = registry.get(Kind.PROCESSOR, key)
        inputs = ObjectInputs.from_data(argument_members(entry), data, f"{name}-{row}")
        # A form made by hand may name any member.
        return cls(row, "id" if member == "id" else "key", key, entry, inputs)

    @classmethod
    def new(cls, key: str, row: str = NEW_ROW) -> ProcessorRow:
        entry = registry.get(Kind.PROCESSOR, key)
        return cls(row, "key", key, entry, ObjectInputs(argument_members(entry)))

    @property
    def title(self) -> str:
        return self.entry.title if self.entry else self.key

    @property
    def value(self) -> str:
        return f"{self.row}:{self.member}:{self.key}"

    def compose(self) -> JSONObject:
        """Return the processor. Raise ValidationError."""
        rest = self.inputs.compose()
        if self.member in rest:
            raise ValidationError(f"“{self.member}” is the key of the processor. Remove the other one.")
        return {self.member: self.key, **rest}


@dataclass(frozen=True)
class ProcessorInputs:
    """The processors of a field in the inputs of a form."""

    rows: Sequence[ProcessorRow]

    def compose(self) -> list[JSONObject]:
        """Return the processors in order. Raise ValidationError, with the title of the processor in each message."""
        processors: list[JSONObject] = []
        errors: list[ValidationError] = []
        for row in self.rows:
            try:
                processors.append(row.compose())
            except ValidationError as error:
                errors += label_errors(row.title, error)
        if errors:
            raise ValidationError(errors)
        return processors


class ProcessorsWidget(forms.Widget):
    """A widget that reads either the JSON text or the rows of processors. Templates render it."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> object:
        if is_json_view(data, name):
            return data.get(name)
        rows = [ProcessorRow.from_data(data, name, item) for item in get_submitted_list(data, f"{name}-item")]
        rows = sort_by_position(rows, [data.get(f"{name}-{row.row}-position") for row in rows])
        # Other rows have numbers as names, so that none of them has the name of an added one.
        added = enumerate(filter(None, get_submitted_list(data, f"{name}-add")))
        return ProcessorInputs([*rows, *(ProcessorRow.new(key, f"added{index}") for index, key in added)])


class ProcessorsField(StrictJSONField):
    """A list of processors that is edited by rows or as JSON."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"required": False, "empty": list, "widget": ProcessorsWidget(), **options})

    def to_python(self, value: object) -> Any:
        return value.compose() if isinstance(value, ProcessorInputs) else super().to_python(value)

    def describe(self, value: object) -> ProcessorInputs | None:
        """Return the rows of a value, or None if only JSON can show it."""
        if isinstance(value, ProcessorInputs):
            return value
        if not isinstance(value, list):
            return None
        rows = [ProcessorRow.describe(str(index), processor) for index, processor in enumerate(value)]
        return ProcessorInputs([row for row in rows if row]) if all(rows) else None
