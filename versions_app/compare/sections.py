"""Sections of a comparison page: texts by line and word, lists by item, JSON by path."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from itertools import count, islice
from typing import NamedTuple

from agentcms.wire.json_types import JSONMapping
from agents_app.configuration.field_labels import FIELD_LABELS
from versions_app.compare.change_summary import FieldSummary, summarize_field
from versions_app.compare.diff import (
    FieldDiff,
    diff_items,
    visible_differences,
)
from versions_app.compare.path_rows import PathRow, build_path_row, differing_paths
from versions_app.compare.text_rows import CompareOptions, RowBlock, build_text_blocks

TEXT_FIELDS = ("name", "description", "instructions")
LIST_FIELDS = ("tools", "workflows", "agents", "integrationTools")

MAX_PATHS = 300  # of a readable page, which reports how many were omitted


class ListItem(NamedTuple):
    """A key of a compared list, with its old and new position."""

    kind: str  # "equal", "added", "removed" or "moved"
    key: str
    old_position: int | None
    new_position: int | None
    change: int | None


@dataclass
class Section:
    """A field that differs."""

    field: str
    label: str
    kind: str  # "text", "list" or "json"
    summary: FieldSummary
    blocks: Sequence[RowBlock] = dataclass_field(default_factory=list)
    items: Sequence[ListItem] = dataclass_field(default_factory=list)
    paths: Sequence[PathRow] = dataclass_field(default_factory=list)
    omitted: int = 0
    id_prefix: str = ""

    @property
    def id(self) -> str:
        return f"{self.id_prefix or 'section'}-{self.field}"


def build_sections(
    before: JSONMapping,
    after: JSONMapping,
    *,
    side_by_side: bool = True,
    unfolded: Collection[str] = (),
    id_prefix: str = "",
) -> list[Section]:
    """Return a section for each field that differs. Folds and parts of texts whose keys are in `unfolded` are open."""
    numbers, options = count(1), CompareOptions(side_by_side, unfolded, id_prefix)
    return [build_diff_section(diff, numbers, options) for diff in visible_differences(before, after)]


def build_diff_section(diff: FieldDiff, numbers: Iterator[int], options: CompareOptions) -> Section:
    section = Section(diff.field, FIELD_LABELS[diff.field], "json", summarize_field(diff), id_prefix=options.id_prefix)
    if diff.field in TEXT_FIELDS:
        section.kind = "text"
        section.blocks = build_text_blocks(diff, numbers, options)
    elif diff.field in LIST_FIELDS:
        section.kind = "list"
        section.items = list(build_list_items(diff.before or [], diff.after or [], numbers))
    else:
        differences = differing_paths(diff)
        section.paths = [build_path_row(diff, path, next(numbers)) for path in islice(differences, MAX_PATHS)]
        section.omitted = sum(1 for _ in differences)
    return section


def build_list_items(before: Sequence[str], after: Sequence[str], numbers: Iterator[int]) -> Iterator[ListItem]:
    """Yield every key of two lists, with its kind of change and its positions."""
    old_positions = {key: index for index, key in enumerate(before, 1)}
    new_positions = {key: index for index, key in enumerate(after, 1)}
    for item in diff_items(before, after):
        kind = "equal" if item.kind == "same" else item.kind
        change = None if kind == "equal" else next(numbers)
        yield ListItem(kind, item.item, old_positions.get(item.item), new_positions.get(item.item), change)


def count_changes(differences: Sequence[Section]) -> int:
    """Return the number of changes through which the keys `n` and `p` step."""
    rows = sum(row.change is not None for section in differences for block in section.blocks for row in block.rows)
    return (
        rows
        + sum(item.change is not None for section in differences for item in section.items)
        + sum(len(section.paths) for section in differences)
    )
