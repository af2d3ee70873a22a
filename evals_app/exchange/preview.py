"""The first rows of a file before its import, with a choice of the field for each column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from agentcms.wire.json_types import JSONMapping
from agents_app.configuration.schema import ConfigError
from evals_app.exchange.cells import value_to_json
from evals_app.exchange.columns import (
    JSON_COLUMNS,
    JSON_SUFFIX,
    MAX_FILE_COLUMNS,
    TOO_MANY_COLUMNS_MESSAGE,
    ColumnTargets,
    resolve_columns,
    suggest_columns,
    target_of_name,
)
from evals_app.exchange.formats import ITEM_FIELDS, OBJECT_FIELDS, FileFormat
from evals_app.exchange.reading import UnreadableFile, first_values, read_header
from jobs_app.models import JobFile

PREVIEW_ROWS = 5
LABELS = {
    "externalId": "External ID",
    "input": "Input",
    "groundTruth": "Ground truth",
    "expectedTrajectory": "Expected steps (JSON)",
    "toolMocks": "Tool mocks (JSON)",
    "unmockedToolPolicy": "Policy for calls without a mock",
    "scorerIds": "Scorers (JSON)",
    "requestContext": "Request context (JSON)",
    "metadata": "Metadata (JSON)",
    "source": "Source (JSON)",
}


class PreviewColumn(NamedTuple):
    """A column of the file with the fields that it may fill."""

    name: str
    field_name: str
    target: str
    choices: list[tuple[str, str]]


@dataclass
class Preview:
    """The first rows of a file as texts. `problem` says why there are none."""

    columns: list[PreviewColumn] = field(default_factory=list)
    header: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    problem: str = ""
    is_mapped: bool = False  # its columns need a mapping


def build_preview(file: JobFile, file_format: str, chosen: ColumnTargets | None) -> Preview:
    """Return the preview of a stored file. `chosen` is the mapping so far, or None for a suggestion."""
    try:
        with file.open() as content:
            header = read_header(content) if file_format == FileFormat.CSV else []
            content.seek(0)
            values = first_values(content, file_format, PREVIEW_ROWS)
    except UnreadableFile as error:
        return Preview(problem=f"Line {error.line}: {error.message}" if error.line else error.message)
    except FileNotFoundError:
        return Preview(problem="The file was deleted. Choose it again.")
    if file_format != FileFormat.CSV:
        return preview_of_objects(values)
    if len(header) > MAX_FILE_COLUMNS:
        return Preview(problem=TOO_MANY_COLUMNS_MESSAGE)
    suggested = {**suggest_columns(header), **(chosen or {})}
    columns = [column_of(number, name, suggested.get(name)) for number, name in enumerate(header)]
    rows = [[cells.get(name, "") for name in header] for cells in values]
    return Preview(columns, header, rows, is_mapped=True)


def preview_of_objects(values: list[JSONMapping]) -> Preview:
    header = list(dict.fromkeys(name for value in values for name in value))[:MAX_FILE_COLUMNS]
    rows = [[text_of_value(value.get(name)) for name in header] for value in values]
    return Preview(header=header, rows=rows)


def text_of_value(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else value_to_json(value)


def column_of(number: int, name: str, target: str | None) -> PreviewColumn:
    choices = [("", "Leave out"), *LABELS.items()]
    if target and target not in ITEM_FIELDS:
        choices.append((target, label_of_target(target)))
    elif "." not in name and name:
        choices += [(f"{part}.{name}", label_of_target(f"{part}.{name}")) for part in OBJECT_FIELDS]
    return PreviewColumn(name, f"column-{number}", target or "", choices)


def label_of_target(target: str) -> str:
    """Return the label of a target that is not a field itself: a key of one, or JSON of any kind."""
    if target in JSON_COLUMNS:
        return f"{LABELS[target.removesuffix(JSON_SUFFIX)]} (JSON)"
    field, _, key = target.partition(".")
    return f"Key “{key}” of {LABELS[field].removesuffix(' (JSON)').lower()}"


def parse_columns(header: list[str], chosen: Mapping[str, str]) -> tuple[ColumnTargets, str]:
    """Return the mapping that a form has chosen, with what is wrong with it or a blank text."""
    columns: ColumnTargets = {}
    for number, name in enumerate(header):
        target = chosen.get(f"column-{number}", "")
        columns[name] = target if target_of_name(target) else None
    try:
        resolve_columns(header, columns)
    except ConfigError as error:
        return columns, " ".join(issue.message for issue in error.issues)
    return columns, ""
