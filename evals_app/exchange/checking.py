"""The check of every row of an import, before anything is stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from agentcms.wire.json_types import JSONObject
from agentcms.wire.unknown_names import find_unknown_below, find_unknown_names
from agents_app.configuration.schema import ConfigError, Issue
from evals_app.datasets.changes import MAX_ITEMS, validator_of
from evals_app.datasets.schema import ItemBody, parse_item
from evals_app.exchange.columns import ColumnTargets, resolve_columns
from evals_app.exchange.formats import ITEM_FIELDS, READ_ONLY_ITEM_FIELDS, FileFormat
from evals_app.exchange.reading import FileRow, UnreadableFile, read_header, read_rows
from evals_app.models import Dataset

TOO_MANY_ROWS_MESSAGE = f"The file has more than {MAX_ITEMS:,} items. Split it into several datasets."


class RowFault(Exception):
    """A row that is not an item, or a file that cannot be read from this line on."""

    def __init__(self, line: int, issues: list[Issue]) -> None:
        super().__init__(line)
        self.line = line
        self.issues = issues

    @property
    def reason(self) -> str:
        """The issues as one text."""
        return " ".join(f"{issue.field}: {issue.message}" if issue.field else issue.message for issue in self.issues)


class ItemFile:
    """A file of items for a dataset. `source` is that of items which name none, or None."""

    def __init__(self, file: IO[bytes], file_format: str, columns: ColumnTargets | None, name: str = "") -> None:
        self.file = file
        self.format = file_format
        self.columns = columns
        kind = "csv" if file_format == FileFormat.CSV else "json"
        self.source = {"type": kind, "referenceId": name[:500]} if name else {"type": kind}

    def read(self) -> Iterator[tuple[int, JSONObject | RowFault]]:
        """Yield the columns of each item with its line, or what is wrong there."""
        columns: ColumnTargets | None = None
        try:
            if self.format == FileFormat.CSV:
                columns = resolve_columns(read_header(self.file), self.columns)
            for number, row in enumerate(read_rows(self.file, self.format, columns)):
                # The rest is not read: nothing of the file is stored anyway.
                if number == MAX_ITEMS:
                    yield row.line, RowFault(row.line, [Issue("", TOO_MANY_ROWS_MESSAGE)])
                    return
                yield row.line, self._parse(row)
        except ConfigError as error:
            yield 1, RowFault(1, [*error.issues])
        except UnreadableFile as error:
            yield error.line, RowFault(error.line, [Issue("", error.message)])

    def _parse(self, row: FileRow) -> JSONObject | RowFault:
        if row.body is None:
            return RowFault(row.line, row.issues)
        body = {name: value for name, value in row.body.items() if name not in READ_ONLY_ITEM_FIELDS}
        if unknown := [*find_unknown_names(body, ITEM_FIELDS), *find_unknown_below(ItemBody, body)]:
            return RowFault(row.line, [Issue(name.field, name.message) for name in unknown])
        try:
            item = parse_item(body)
        except ConfigError as error:
            return RowFault(row.line, [*error.issues])
        return item if "source" in body else {**item, "source": self.source}


def check_items(dataset: Dataset, items: ItemFile) -> Iterator[tuple[int, RowFault | None]]:
    """Yield the line of each row, with what is wrong there."""
    validator = validator_of(dataset)
    lines: dict[str, int] = {}  # by external ID
    purged = dataset.items.exclude(purged_at=None).exclude(external_id=None)
    purged_ids = set(purged.values_list("external_id", flat=True))
    is_empty = True
    for line, item in items.read():
        is_empty = False
        if isinstance(item, RowFault):
            yield line, item
            continue
        issues = list(validator.issues(item))
        if external_id := item.get("external_id"):
            first = lines.setdefault(external_id, line)
            if first != line:
                issues.append(Issue("externalId", f"Line {first} has the same external ID."))
            if external_id in purged_ids:
                issues.append(Issue("externalId", "The item with this external ID was purged and cannot be changed."))
        yield line, RowFault(line, issues) if issues else None
    if is_empty:
        yield 0, RowFault(0, [Issue("", "The file has no items.")])
