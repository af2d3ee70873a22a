"""A form field for the declared variables of an agent: a row for each, or their JSON Schema.

The names of the inputs, for a field `request_context_schema`, with one value of each for every row:

    request_context_schema-row-name, -row-type, -row-description, -row-default, -row-required
    request_context_schema-typed   "yes" if the stored schema has "type": "object"

The JSON text and the view have the names of `objects.field`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django import forms
from django.core.exceptions import ValidationError

from agentcms.wire.canonical import json_equal
from agentcms.wire.json_types import JSONObject
from agents_app.configuration.variables import JSON_TYPES
from agents_app.forms.fields import StrictJSONField
from agents_app.forms.form_data import FormData
from agents_app.forms.objects.field import get_submitted_list, is_json_view
from agents_app.forms.objects.members import (
    InputError,
    format_input_value,
    is_plain_name,
    normalize_lines,
    parse_json,
    texts_by_target,
)

TEXT_VARIABLE_TYPES = ("", "string")  # of the types, those whose default is written as it is
TYPE_LABELS = {"": "Any", "string": "Text", "number": "Number", "integer": "Whole number", "boolean": "True or false"}
TYPE_LABELS |= {name: name.capitalize() for name in JSON_TYPES if name not in TYPE_LABELS}
VARIABLE_COLUMNS = ("name", "type", "description", "default", "required")


class VariableRow(NamedTuple):
    """A declared variable as the texts of its inputs."""

    name: str
    type: str = ""
    description: str = ""
    default: str = ""
    required: str = "no"

    @classmethod
    def describe(cls, name: str, schema: object, *, is_required: bool) -> VariableRow:
        schema = schema if isinstance(schema, dict) else {}
        kind = schema.get("type", "")
        default = schema.get("default", "")
        text = format_input_value("text" if kind in TEXT_VARIABLE_TYPES else "json", default) if default != "" else ""
        return cls(name, kind, schema.get("description", ""), text or "", "yes" if is_required else "no")

    def compose(self) -> JSONObject:
        """Return the schema of the variable. Raise ValidationError."""
        schema: JSONObject = {}
        if self.type:
            schema["type"] = self.type
        if self.description:
            schema["description"] = self.description
        if self.default:
            schema["default"] = self.default if self.type in TEXT_VARIABLE_TYPES else parse_json(self.default)
        return schema


@dataclass
class VariableInputs:
    """The declared variables in the inputs of a form."""

    rows: Sequence[VariableRow]
    is_typed: bool = False
    prefix: str = field(default="", compare=False)  # of the names of the inputs
    errors: list[InputError] = field(default_factory=list, compare=False)

    @classmethod
    def describe(cls, value: object) -> VariableInputs | None:
        """Return the rows that give a schema back unchanged, or None if it needs JSON."""
        if value is None:
            return cls([])
        if not isinstance(value, dict):
            return None
        properties, required = value.get("properties", {}), value.get("required", [])
        # Text that a person typed as JSON is described before it is validated.
        if not isinstance(properties, Mapping) or not isinstance(required, list):
            return None
        if not all(map(is_plain_name, properties)):
            return None
        # Databases order the members of an object differently. The order of `required` must come back unchanged.
        first = [name for name in required if isinstance(name, str) and name in properties]
        names = dict.fromkeys([*first, *sorted(properties)])
        rows = [VariableRow.describe(name, properties[name], is_required=name in required) for name in names]
        inputs = cls(rows, value.get("type") == "object")
        try:
            is_same = json_equal(inputs.compose(), value)
        except (ValidationError, TypeError):
            return None
        has_lines = all(isinstance(text, str) and text == normalize_lines(text) for row in rows for text in row)
        return inputs if is_same and has_lines else None

    @classmethod
    def from_data(cls, data: FormData, name: str) -> VariableInputs:
        columns = (get_submitted_list(data, f"{name}-row-{column}") for column in VARIABLE_COLUMNS)
        rows = [VariableRow(*map(normalize_lines, texts)) for texts in zip(*columns, strict=False)]
        return cls([row for row in rows if row.name], data.get(f"{name}-typed") == "yes", name)

    def compose(self) -> JSONObject | None:
        """Return the schema, or None without variables.

        Raise ValidationError, and set the errors, with the variable in each message.
        """
        properties: JSONObject = {}
        self.errors = []
        for position, row in enumerate(self.rows):
            if row.name in properties:
                message = f"“{row.name}” is declared twice. Remove one of them."
                self.errors.append(InputError(message, f"{self.prefix}-row-name:{position}"))
            try:
                properties[row.name] = row.compose()
            except ValidationError as error:
                label, name = f"The default of “{row.name}”", f"{self.prefix}-row-default"
                self.errors += InputError.build(label, error, name, position)
        if self.errors:
            raise ValidationError([*self.errors])
        required = [row.name for row in self.rows if row.required == "yes"]
        typed = {"type": "object"} if self.is_typed else {}
        schema = {**typed, "properties": properties, **({"required": required} if required else {})}
        return schema if properties else None

    # --- for the template

    @property
    def rows_with_errors(self) -> list[tuple[VariableRow, str, str]]:
        """Return the rows, each with the error of its name and that of its default."""
        name, default = f"{self.prefix}-row-name", f"{self.prefix}-row-default"
        texts = texts_by_target(self.errors)  # once, because a form may have thousands of rows
        return [
            (row, texts.get(f"{name}:{position}", ""), texts.get(f"{default}:{position}", ""))
            for position, row in enumerate(self.rows)
        ]

    @property
    def types(self) -> dict[str, str]:
        return TYPE_LABELS

    @property
    def blank(self) -> VariableRow:
        return VariableRow("")


class VariablesWidget(forms.Widget):
    """A widget that reads either the JSON text or the rows of variables. Templates render it."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> object:
        return data.get(name) if is_json_view(data, name) else VariableInputs.from_data(data, name)


class VariablesField(StrictJSONField):
    """The declared variables of an agent, which are edited by rows or as JSON."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            **{"required": False, "empty": lambda: None, "label": "Variables", "widget": VariablesWidget(), **options}
        )

    def to_python(self, value: object) -> Any:
        if isinstance(value, VariableInputs):
            return value.compose()
        return value if isinstance(value, dict) else super().to_python(value)  # {} is not the same as nothing

    def describe(self, value: object) -> VariableInputs | None:
        return value if isinstance(value, VariableInputs) else VariableInputs.describe(value)
