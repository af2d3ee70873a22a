"""Validation of values against a JSON Schema, with the path of each issue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

from agentcms.wire.json_schema import SchemaUnusable, SchemaValidator
from agentcms.wire.json_types import JSONMapping
from agentcms.wire.names import join_path
from agentcms.wire.validation import find_json_faults
from agents_app.configuration.schema import Issue

if TYPE_CHECKING:
    from jsonschema import ValidationError

MAX_ERRORS = 100
MAX_MESSAGE_LENGTH = 300  # characters; a message quotes the value


def issues_by_schema(value: object, schema: JSONMapping | None, field: str) -> list[Issue]:
    """Return the issues of a value with their paths, which begin with the field. Without a schema, any JSON fits."""
    if faults := [*find_json_faults(value, field)]:
        return [Issue(fault.field, fault.message) for fault in faults]
    if schema is None:
        return []
    try:
        errors = SchemaValidator(schema).errors(value, MAX_ERRORS)
        return [Issue(*issue) for issue in sorted({*_find_issues(errors, field)})]
    except SchemaUnusable as error:
        return [Issue(field, str(error))]


def _find_issues(errors: Iterable[ValidationError], field: str) -> Iterator[tuple[str, str]]:
    for error in errors:
        path = field
        for step in error.absolute_path:
            path = f"{path}[{step}]" if isinstance(step, int) else join_path(path, step)
        if error.validator == "required":  # named at the member, so that a form can show it there
            required, members = cast("list[str]", error.validator_value), cast("dict[str, Any]", error.instance)
            missing = [name for name in required if name not in members]
            yield from ((join_path(path, name), "This is required.") for name in missing)
        else:
            yield path, f"{error.message[:MAX_MESSAGE_LENGTH]}."
