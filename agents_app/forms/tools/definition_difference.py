"""The difference between the definition of a tool and the accepted one, line by line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import count
from typing import NamedTuple

from agents_app.registry import Entry
from versions_app.compare.diff import FieldDiff
from versions_app.compare.text_rows import CompareOptions, RowBlock, build_text_blocks

PART_LABELS = {"description": "Description", "schema": "Schema", "title": "Title", "annotations": "Annotations"}


class PartDifference(NamedTuple):
    """A part of a definition with the lines that differ."""

    label: str
    blocks: Sequence[RowBlock]


def part_differences(entry: Entry) -> Iterator[PartDifference]:
    """Yield the parts in which the definition of a tool differs from the accepted one."""
    # Whole: who accepts a definition must see all of it, and this page opens no part.
    options = CompareOptions(side_by_side=False, id_prefix=entry.key, is_whole=True)
    for part, before, after in entry.differences:
        diff = FieldDiff(part, definition_text(before), definition_text(after))
        yield PartDifference(PART_LABELS.get(part, part), build_text_blocks(diff, count(1), options))


def definition_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
