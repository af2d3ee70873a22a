"""Items of a dataset as a file. The same items always give the same file."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO

from agentcms.wire.json_types import JSONObject
from evals_app.exchange.cells import json_to_cell, value_to_cell, value_to_json
from evals_app.exchange.columns import JSON_SUFFIX
from evals_app.exchange.formats import ANY_FIELDS, ITEM_FIELDS, FileFormat
from evals_app.models import Dataset, ItemVersion

BATCH_SIZE = 500
# `source` also if it is null: an import makes the file the source of items that do not name one.
ALWAYS_WRITTEN = ("input", "groundTruth", "source")


def export_items(dataset: Dataset, version: int, file_format: str) -> Iterator[bytes]:
    """Yield the file of the items as they were at a version of the dataset. Purged items have nothing to export."""
    if file_format == FileFormat.CSV:
        yield from _csv_parts(dataset, version)
    elif file_format == FileFormat.JSONL:
        for batch in _batches(dataset, version):
            yield "".join(f"{value_to_json(body)}\n" for body in batch).encode()
    else:
        yield b"["
        separator = "\n"
        for batch in _batches(dataset, version):
            yield (separator + ",\n".join(map(value_to_json, batch))).encode()
            separator = ",\n"
        yield b"\n]\n"


def _csv_parts(dataset: Dataset, version: int) -> Iterator[bytes]:
    # The items are read twice: the first line names the columns that any of them needs.
    columns = _used_columns(body for batch in _batches(dataset, version) for body in batch)
    yield _csv_lines([columns])
    for batch in _batches(dataset, version):
        yield _csv_lines([_cell(body, column) for column in columns] for body in batch)


def _used_columns(bodies: Iterable[JSONObject]) -> list[str]:
    """Return the columns that the items need, in the order of the file."""
    used = set(ALWAYS_WRITTEN)
    for body in bodies:
        used |= body.keys()
        used |= {f"{field}{JSON_SUFFIX}" for field in ANY_FIELDS if _needs_json(field, body.get(field))}
    names = (name for field in ITEM_FIELDS for name in (field, f"{field}{JSON_SUFFIX}"))
    return [name for name in names if name in used]


def _needs_json(field: str, value: object) -> bool:
    """Return True for what an ordinary cell cannot say: a number, true or false, and an input of null."""
    return not isinstance(value, str | dict | list | None) or (value is None and field == "input")


def _cell(body: JSONObject, column: str) -> str:
    field = column.removesuffix(JSON_SUFFIX)
    value = body.get(field)
    if column == field:
        return "" if field in ANY_FIELDS and _needs_json(field, value) else value_to_cell(value)
    return json_to_cell(value) if _needs_json(field, value) else ""


def _csv_lines(rows: Iterable[Sequence[str]]) -> bytes:
    text = StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def _batches(dataset: Dataset, version: int) -> Iterator[list[JSONObject]]:
    """Yield the items in their order. Each batch is a query of its own, which keeps no transaction open."""
    # Without a join: PostgreSQL would read all earlier items again for each batch.
    rows = ItemVersion.objects.filter(dataset=dataset).at_version(version).prefetch_related("item").order_by("item_id")
    after = None
    while batch := list((rows.filter(item_id__gt=after) if after else rows)[:BATCH_SIZE]):
        if bodies := [item_to_body(row) for row in batch if row.item.purged_at is None]:
            yield bodies
        after = batch[-1].item_id


def item_to_body(version: ItemVersion) -> JSONObject:
    """Return an item as a file has it: without what is not set."""
    values: JSONObject = {"externalId": version.item.external_id, **version.wire_content}
    if version.unmocked_tool_policy == ItemVersion.Policy.ALLOW:
        values["unmockedToolPolicy"] = None
    return {name: value for name, value in values.items() if value is not None or name in ALWAYS_WRITTEN}
