"""The errors for what the schema of agents finds in variants, each at an input of its variant."""

from __future__ import annotations

import re
from collections.abc import Sequence

from django.core.exceptions import ValidationError

from agents_app.forms.memory.composing import memory_error
from agents_app.forms.objects.members import InputError, path_error
from agents_app.forms.variants.rows import OPTIONS, VALUE_INPUTS, VARIANT_FIELDS, VariantRow

# The length of the name is bounded, so that a long text takes linear time.
ISSUE_PATH = re.compile(r"(?P<field>\w{1,100})\[(?P<index>\d+)\]\.?(?P<inner>.*)", re.DOTALL)
FIRST_INPUTS = {"model": "provider", "memory": "key", "tools": "keys"}


def variant_error(path: str, message: str, rows: Sequence[VariantRow]) -> ValidationError:
    """Return the error for an issue at a path of the field `conditional`, and set it on its row."""
    match = ISSUE_PATH.fullmatch(path)
    group = [row for row in rows if match and row.field == match["field"]]
    if match is None or int(match["index"]) >= len(group):
        return path_error(path, message)
    row, inner = group[int(match["index"])], match["inner"]
    error = error_in_row(row, inner, message)
    row.errors.append(error)
    return error.labelled(f"{VARIANT_FIELDS[row.field]}, variant {int(match['index']) + 1}")


def error_in_row(row: VariantRow, inner: str, message: str) -> InputError:
    """Return the error for an issue of a variant, such as `value.options.lastMessages` or `rules`."""
    part, is_rule = inner.removeprefix("value."), inner.startswith("rules")
    if is_rule:
        return row.input_error("rules" if row.rules else "field", message)
    if row.field == "memory" and row.kind == OPTIONS and not row.json:
        error = memory_error(part, message, f"{row.prefix}-")
        if isinstance(error, InputError):
            return error
    if row.json or part not in VALUE_INPUTS[row.field]:
        return row.input_error("json" if row.json else FIRST_INPUTS[row.field], f"{inner}: {message}")
    return row.input_error(part, message)
