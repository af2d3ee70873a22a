"""The fields of the variables in the playground. They have texts, and runs get values of the declared types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

from django import forms
from django.http import QueryDict

from agentcms.wire.canonical import text_or_json
from agentcms.wire.json_parser import InvalidJSON, parse_typed_json
from agentcms.wire.json_types import JSONMapping, JSONObject
from agents_app.configuration.variables import Variable, declared_variables, variables_of
from agents_app.forms.fields import RawTextField

VARIABLE_PREFIX = "variable-"
MAX_FIELDS = 100


class VariablesForm(forms.Form):
    """A field for each variable of the agent, in any of the columns."""

    def __init__(
        self, variables: Sequence[Variable], values: Mapping[str, str], *, is_submitted: bool = False
    ) -> None:
        self.variables = {field_name(variable.name): variable for variable in variables[:MAX_FIELDS]}
        self.omitted_count = len(variables) - len(self.variables)
        texts = {field_name(name): text for name, text in values.items()}
        super().__init__(texts if is_submitted else None, initial=texts, auto_id="id_%s")
        self.fields.update({name: build_variable_field(variable) for name, variable in self.variables.items()})

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        for name, variable in self.variables.items():
            if cleaned.get(name) and (message := variable.value_error(parse_text(cleaned[name], variable))):
                self.add_error(name, message)
        return cleaned


def build_variable_field(variable: Variable) -> forms.Field:
    """Return the form field of a variable: a text, or a choice of the allowed values."""
    default = "" if variable.default is None else text_or_json(variable.default)
    options: JSONObject = {
        "label": variable.name,
        "required": variable.is_required and variable.default is None,
        "help_text": variable.description,
        "error_messages": {"required": f"Enter a value for {variable.name}."},
    }
    if variable.choices:
        texts = [text_or_json(choice) for choice in variable.choices]
        empty = f"Default: {default}" if default else "Not set"
        widget = forms.Select(attrs={"dir": "auto"})
        return forms.ChoiceField(choices=[("", empty), *((text, text) for text in texts)], widget=widget, **options)
    attributes = {"rows": 1, "placeholder": default, "dir": "auto", "spellcheck": "false"}
    return RawTextField(widget=forms.Textarea(attrs=attributes), **options)


def field_name(name: str) -> str:
    """Return the name of the field of a variable, which is a part of an id and so has no spaces."""
    return f"{VARIABLE_PREFIX}{quote(name, safe='')}"


def submitted_texts(query: QueryDict) -> dict[str, str]:
    """Return the texts of the variables in a submitted form, without empty ones."""
    names = (name for name in query if name.startswith(VARIABLE_PREFIX))
    texts = {unquote(name.removeprefix(VARIABLE_PREFIX)): str(query[name]).replace("\r\n", "\n") for name in names}
    return {name: text for name, text in texts.items() if text}


def texts_of_values(values: JSONMapping | None) -> dict[str, str]:
    """Return the texts for the fields of the values of a run or of a saved input."""
    return {name: text_or_json(value) for name, value in (values or {}).items() if value is not None}


def variables_of_all(configurations: Iterable[JSONMapping]) -> list[Variable]:
    """Return the variables of several configurations by name. One that any of them requires is required, and first."""
    variables: dict[str, Variable] = {}
    for configuration in configurations:
        for variable in variables_of(configuration):
            known = variables.setdefault(variable.name, variable)
            if variable.is_required and not known.is_required:
                variables[variable.name] = variable
    return sorted(variables.values(), key=lambda variable: not variable.is_required)


def typed_values(texts: Mapping[str, str], configuration: JSONMapping) -> JSONObject:
    """Return the values of these texts for a run: of the types that its configuration declares."""
    declared = {variable.name: variable for variable in declared_variables(configuration)}
    return {name: parse_text(text, declared[name]) if name in declared else text for name, text in texts.items()}


def parse_text(text: str, variable: Variable) -> object:
    """Return the value that a text stands for: one of the allowed values, or JSON if the variable is not a text."""
    for choice in variable.choices:
        if text_or_json(choice) == text:
            return choice
    if not variable.types or "string" in variable.types:
        return text
    try:
        return parse_typed_json(text)
    except InvalidJSON:
        return text  # which the type refuses
