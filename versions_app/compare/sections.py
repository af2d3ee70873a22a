"""Sections of a comparison page: texts by line and word, lists by item, JSON by path."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from itertools import count, islice, zip_longest
from typing import Any, NamedTuple

from agents_app.configuration.display import FIELD_LABELS
from versions_app.compare.diff import (
    DiffLine,
    FieldDiff,
    Fold,
    LinePart,
    diff_items,
    diff_lines,
    fold_unchanged,
    visible_differences,
)
from versions_app.compare.path_rows import PathRow, build_path_row, differing_paths, truncate_text
from versions_app.compare.summary import FieldSummary, summarize_field

TEXT_FIELDS = ("name", "description", "instructions")
LIST_FIELDS = ("tools", "workflows", "agents", "integrationTools")

# Limits of a readable page. The page reports how much was omitted.
MAX_DIFF_ROWS = 3000
MAX_PATHS = 300


class TextSpan(NamedTuple):
    """Consecutive characters of a line of one kind: equal, added or removed."""

    kind: str
    text: str


class Side(NamedTuple):
    """A line of the old or of the new text."""

    number: int
    spans: Sequence[TextSpan]


@dataclass
class DiffRow:
    """A row of a text comparison. The first row of a change has the number of the change."""

    kind: str  # "equal", "added", "removed", "changed" or "folded"
    old: Side | None = None
    new: Side | None = None
    change: int | None = None
    count: int = 0  # folded lines

    @property
    def spans(self) -> Sequence[TextSpan]:
        side = self.new or self.old
        return side.spans if side else ()


@dataclass
class RowBlock:
    """Consecutive rows. Folded rows have a `key`, by which a request opens them."""

    rows: Sequence[DiffRow]
    key: str = ""
    folded: bool = False


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


@dataclass(frozen=True)
class CompareOptions:
    """Display options. `id_prefix` keeps element IDs unique if a page has two comparisons."""

    side_by_side: bool = True
    unfolded: Collection[str] = ()
    id_prefix: str = ""

    def key(self, field: str, line: int | None) -> str:
        return "-".join(filter(None, [self.id_prefix, field, str(line)]))


def build_sections(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    *,
    side_by_side: bool = True,
    unfolded: Collection[str] = (),
    id_prefix: str = "",
) -> list[Section]:
    """Return a section for each field that differs. Folds whose keys are in `unfolded` are open."""
    numbers, options = count(1), CompareOptions(side_by_side, unfolded, id_prefix)
    return [build_diff_section(diff, numbers, options) for diff in visible_differences(before, after)]


def build_diff_section(diff: FieldDiff, numbers: Iterator[int], options: CompareOptions) -> Section:
    section = Section(diff.field, FIELD_LABELS[diff.field], "json", summarize_field(diff), id_prefix=options.id_prefix)
    if diff.field in TEXT_FIELDS:
        section.kind = "text"
        section.blocks, section.omitted = build_text_blocks(diff, numbers, options)
    elif diff.field in LIST_FIELDS:
        section.kind = "list"
        section.items = list(build_list_items(diff.before or [], diff.after or [], numbers))
    else:
        differences = differing_paths(diff)
        section.paths = [build_path_row(diff, path, next(numbers)) for path in islice(differences, MAX_PATHS)]
        section.omitted = sum(1 for _ in differences)
    return section


def build_text_blocks(diff: FieldDiff, numbers: Iterator[int], options: CompareOptions) -> tuple[list[RowBlock], int]:
    """Return the rows of a text in blocks, and the number of rows above MAX_ROWS."""
    blocks: list[RowBlock] = []
    row_count = 0
    for run in split_at_folds(fold_unchanged(diff_lines(diff.before or "", diff.after or ""))):
        if isinstance(run, Fold):
            key = options.key(diff.field, run.lines[0].after)
            rows = [unchanged_row(line) for line in run.lines]
            if key in options.unfolded:
                blocks.append(RowBlock(rows, key))
            else:
                blocks.append(RowBlock([DiffRow("folded", count=len(rows))], key, folded=True))
            continue
        rows = list(side_by_side_rows(run, numbers) if options.side_by_side else unified_rows(run, numbers))
        blocks.append(RowBlock(rows[: max(MAX_DIFF_ROWS - row_count, 0)]))
        row_count += len(rows)
    return blocks, max(row_count - MAX_DIFF_ROWS, 0)


def split_at_folds(folded: Sequence[DiffLine | Fold]) -> Iterator[Fold | list[DiffLine]]:
    """Yield each fold, and the lines between two folds as a list."""
    between: list[DiffLine] = []
    for line in folded:
        if isinstance(line, Fold):
            if between:
                yield between
            yield line
            between = []
        else:
            between.append(line)
    if between:
        yield between


def unified_rows(lines: Sequence[DiffLine], numbers: Iterator[int]) -> Iterator[DiffRow]:
    """Yield a row for each line, for the unified layout."""
    previous_kind = "same"
    for line in lines:
        is_first = line.kind != "same" and previous_kind == "same"
        previous_kind = line.kind
        if line.kind == "same":
            yield unchanged_row(line)
        else:
            old, new = (build_side(line), None) if line.kind == "removed" else (None, build_side(line))
            yield DiffRow(line.kind, old, new, next(numbers) if is_first else None)


def side_by_side_rows(lines: Sequence[DiffLine], numbers: Iterator[int]) -> Iterator[DiffRow]:
    """Yield rows for the side-by-side layout, each with a removed line and the added line in its place."""
    removed: list[DiffLine] = []
    added: list[DiffLine] = []
    for line in [*lines, None]:
        if line is not None and line.kind != "same":
            (removed if line.kind == "removed" else added).append(line)
            continue
        for index, (old, new) in enumerate(zip_longest(removed, added)):
            kind = "changed" if old and new else "removed" if old else "added"
            change = next(numbers) if index == 0 else None
            yield DiffRow(kind, build_side(old) if old else None, build_side(new) if new else None, change)
        removed, added = [], []
        if line is not None:
            yield unchanged_row(line)


def unchanged_row(line: DiffLine) -> DiffRow:
    spans = [TextSpan("equal", truncate_text(part.text)) for part in line.parts]
    return DiffRow("equal", Side(line.before or 0, spans), Side(line.after or 0, spans))


def build_side(line: DiffLine) -> Side:
    number = line.before if line.kind == "removed" else line.after
    return Side(number or 0, [build_span(part, line.kind) for part in line.parts])


def build_span(part: LinePart, kind: str) -> TextSpan:
    return TextSpan(kind if part.marked else "equal", part.text)


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
