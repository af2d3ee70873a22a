"""The columns of CSV files and the fields of items to which they are mapped."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agentcms.wire.json_parser import InvalidJSON
from agentcms.wire.json_types import JSONMapping, JSONObject
from agents_app.configuration.schema import ConfigError, Issue
from evals_app.exchange.cells import cell_to_json, cell_to_text, cell_to_value
from evals_app.exchange.formats import ANY_FIELDS, ITEM_FIELDS, OBJECT_FIELDS, TEXT_FIELDS

JSON_SUFFIX = "Json"  # inputJson and groundTruthJson: JSON of any kind, such as a number
JSON_COLUMNS = tuple(f"{field}{JSON_SUFFIX}" for field in ANY_FIELDS)
MAX_FILE_COLUMNS = 200
MAX_LISTED_COLUMNS = 20
TOO_MANY_COLUMNS_MESSAGE = f"The file has more than {MAX_FILE_COLUMNS} columns. Delete those that you do not need."
SUGGESTIONS = {
    **{field.lower(): field for field in (*ITEM_FIELDS, *JSON_COLUMNS)},
    **dict.fromkeys(("question", "prompt", "query", "message", "text"), "input"),
    **dict.fromkeys(("answer", "expected", "expectedoutput", "expectedanswer", "output", "truth"), "groundTruth"),
}

ColumnTargets = dict[str, str | None]  # the name of a column and its target; None leaves the column out


def suggest_columns(header: Sequence[str]) -> ColumnTargets:
    """Return a target for each column whose name says it, each target once."""
    columns: ColumnTargets = {}
    for name in header:
        target = target_of_name(name) or SUGGESTIONS.get(re.sub(r"[\s_-]", "", name).lower())
        columns[name] = None if target in columns.values() else target
    return columns


def target_of_name(name: str) -> str | None:
    """Return the target that a column names itself: a field, or a key of one, such as `metadata.topic`."""
    if name in ITEM_FIELDS or name in JSON_COLUMNS:
        return name
    field, dot, key = name.partition(".")
    return name if dot and key and field in OBJECT_FIELDS and "\0" not in key else None


def resolve_columns(header: Sequence[str], columns: JSONMapping | None) -> ColumnTargets:
    """Return the target of each column of a file. Raise ConfigError for a mapping that makes no items.

    Without a mapping, the names of columns are their targets.
    """
    if len(header) > MAX_FILE_COLUMNS:  # first: the other checks compare each column with all others
        raise ConfigError([Issue("columns", TOO_MANY_COLUMNS_MESSAGE)])
    issues = [Issue("columns", f"The column “{name}” occurs twice. Rename one.") for name in _repeated(header)]
    resolved: ColumnTargets = {}
    for name in header:
        target = columns.get(name) if columns is not None else name
        if target is not None and (not isinstance(target, str) or target_of_name(target) is None):
            hint = f"Use one of {', '.join(ITEM_FIELDS)} or a key such as metadata.topic."
            issues.append(Issue("columns", f"The column “{name}” is not mapped to a field. {hint}"))
        else:
            resolved[name] = target
    issues += [
        Issue("columns", f"The file has no column “{name}”.")
        for name in columns or {}
        if name.strip() and name not in header
    ]
    issues += _target_issues([target for target in resolved.values() if target])
    if issues:
        raise ConfigError(issues[:MAX_LISTED_COLUMNS])
    return resolved


def _repeated(header: Sequence[str]) -> list[str]:
    return [name for name in dict.fromkeys(header) if header.count(name) > 1]


def _target_issues(targets: Sequence[str]) -> list[Issue]:
    issues = []
    fields = [target.removesuffix(JSON_SUFFIX) if target in JSON_COLUMNS else target for target in targets]
    if not any(field == "input" or field.startswith("input.") for field in fields):
        issues.append(Issue("columns", "No column is the input. Map one to input."))
    for target in dict.fromkeys(targets):
        is_split = any(other.startswith(f"{target}.") for other in targets)
        if targets.count(target) > 1 or is_split:
            issues.append(Issue("columns", f"More than one column is mapped to {target}."))
    return issues


def row_to_body(cells: Mapping[str, str], columns: Mapping[str, str | None]) -> JSONObject:
    """Return the item in a row, by wire name. A blank cell is null. Raise ConfigError."""
    body: JSONObject = {}
    issues: list[Issue] = []
    has_input = False
    for name, target in columns.items():
        if not target:
            continue
        field = target.removesuffix(JSON_SUFFIX) if target in JSON_COLUMNS else target
        body.setdefault(field.partition(".")[0], None)
        if cell := cells.get(name, ""):
            has_input |= field.partition(".")[0] == "input"
            try:
                _set_value(body, field, _read_cell(cell, target))
            except InvalidJSON as error:
                # The line is that of the cell. The report has the line of the file too.
                issues.append(Issue(field, str(error).replace("The JSON cannot", "The JSON of the cell cannot", 1)))
    if not has_input:
        issues.append(Issue("input", "The input is blank."))
    if issues:
        raise ConfigError(issues)
    return body


def _read_cell(cell: str, target: str) -> object:
    if target in JSON_COLUMNS:
        return cell_to_json(cell)
    return cell_to_text(cell) if target in TEXT_FIELDS else cell_to_value(cell)


def _set_value(body: JSONObject, field: str, value: object) -> None:
    name, _, key = field.partition(".")
    if key:
        body[name] = {**(body[name] or {}), key: value}
    else:
        body[name] = value
