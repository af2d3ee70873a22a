"""Filling the variables in the instructions of an agent from the request context of a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from django.conf import settings

from agentcms.wire.canonical import text_or_json
from agentcms.wire.json_types import JSONMapping, JSONValue
from agentcms.wire.names import join_path, printable_key
from agents_app.configuration.references import MissingReference
from agents_app.configuration.schema import ConfigError, Issue
from agents_app.configuration.variables import Variable, declared_variables, find_placeholders

MAX_VARIABLE_WARNINGS = 20  # of one run
REQUIRED_VARIABLE_MESSAGE = "The agent needs this variable. Send it in requestContext or in variables."


class FilledInstructions(NamedTuple):
    """The instructions that the model gets, and a warning for each variable without a value."""

    text: str
    warnings: list[MissingReference]


def fill_instructions(configuration: JSONMapping, context: JSONMapping) -> FilledInstructions:
    """Fill the placeholders in the instructions of a configuration in wire names.

    A placeholder takes its value from the context, else its own default, else the default of its declaration. One
    without any of them stays as it is. Values are inserted as text: a placeholder in a value is not filled.
    Raise ConfigError if a required variable is missing, a value has the wrong type, or the text becomes too long.
    """
    declared = {variable.name: variable for variable in declared_variables(configuration)}
    reject_invalid_values(declared, context)
    template = str(configuration.get("instructions") or "")
    defaults = {name: variable.default for name, variable in declared.items()}
    texts: dict[tuple[str, str | None], str | None] = {}
    parts: list[str] = []
    missing: dict[str, None] = {}
    end, inserted = 0, 0
    for place in find_placeholders(template):
        key = (place.path, place.default)
        if key not in texts:
            texts[key] = variable_text(place.path, place.default, defaults, context)
        text = texts[key]
        if text is None:
            missing[place.path] = None
            continue
        inserted += len(text.encode())
        # Checked before the parts are joined: the same value may be inserted thousands of times.
        if inserted > settings.RUN_MAX_INPUT:
            raise too_long_error()
        parts += [template[end : place.start], text]
        end = place.end
    return FilledInstructions("".join([*parts, template[end:]]), missing_warnings([*missing]))


def reject_invalid_values(declared: Mapping[str, Variable], context: JSONMapping) -> None:
    """Raise ConfigError with each required variable that is missing and each value that its declaration refuses."""
    issues = []
    for name, variable in declared.items():
        value = find_value(context, name)
        if value is None:
            message = REQUIRED_VARIABLE_MESSAGE if variable.is_required and variable.default is None else ""
        else:
            message = variable.value_error(value)
        if message:
            issues.append(Issue(join_path("requestContext", name), message))
    if issues:
        raise ConfigError(issues)


def variable_text(path: str, default: str | None, defaults: JSONMapping, context: JSONMapping) -> str | None:
    """Return the text for a placeholder, or None if there is none. `defaults` are those of the declarations."""
    value = find_value(context, path)
    if value is None and default is not None:
        return default
    if value is None:
        value = find_value(defaults, path)
    return None if value is None else text_or_json(value)


def find_value(context: JSONMapping, path: str) -> JSONValue:
    """Return the value of a key that is the whole path, or the one at the path. None if there is no value."""
    if (value := context.get(path)) is not None:
        return value
    value = context
    for name in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(name)
        # No list has ten digits of items, and Python refuses to convert thousands of them.
        elif isinstance(value, list) and name.isdecimal() and len(name) < 10:
            value = value[int(name)] if int(name) < len(value) else None
        else:
            return None
    return value


def missing_warnings(paths: list[str]) -> list[MissingReference]:
    """Return a warning for each variable without a value, up to a limit."""
    warnings = [
        MissingReference(
            "instructions",
            printable_key(path),
            missing_variable_message(printable_key(path)),
        )
        for path in paths[:MAX_VARIABLE_WARNINGS]
    ]
    if more := len(paths) - len(warnings):
        warnings.append(MissingReference("instructions", "", f"{more} more variables have no value."))
    return warnings


def missing_variable_message(path: str) -> str:
    return f"The variable {path} has no value and no default, so {{{{{path}}}}} stays in the instructions."


def too_long_error() -> ConfigError:
    maximum = settings.RUN_MAX_INPUT // 1024
    message = f"The values fill the instructions with more than {maximum} KB. Send shorter values."
    return ConfigError([Issue("requestContext", message)])
