"""Two snapshots as the sections of a page: texts by line and word, lists by item, JSON by path."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as made_by
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
    diff_paths,
    diff_snapshots,
    fold_unchanged,
)
from versions_app.compare.summary import FieldSummary, summarize_field

TEXT_FIELDS = ("name", "description", "instructions", "memory")
LIST_FIELDS = ("tools", "workflows", "agents", "integrationTools")

# What a page can show and a person can read; beyond it the page says how much more there is.
MAX_ROWS = 3000
MAX_PATHS = 300
MAX_JSON_LENGTH = 4000


class TextSpan(NamedTuple):
    """Characters of a line: equal, added or removed."""

    kind: str
    text: str


class Side(NamedTuple):
    """A line on one side."""

    number: int
    parts: Sequence[TextSpan]


@dataclass
class DiffRow:
    """A row of a text comparison; `change` is its place among all changes where it begins one."""

    kind: str  # "equal", "added", "removed", "changed" or "folded"
    old: Side | None = None
    new: Side | None = None
    change: int | None = None
    count: int = 0  # of the lines that are folded

    @property
    def parts(self) -> Sequence[TextSpan]:
        side = self.new or self.old
        return side.parts if side else ()


@dataclass
class RowBlock:
    """Rows that stand together: a fold is one that can be opened alone; `key` names it."""

    rows: Sequence[DiffRow]
    key: str = ""
    folded: bool = False


class ListItem(NamedTuple):
    """A key in a list that was compared."""

    kind: str  # "equal", "added", "removed" or "moved"
    key: str
    was: int | None
    now: int | None
    change: int | None


class PathRow(NamedTuple):
    """A path inside a JSON value that differs, with both values as JSON text or None where there was none."""

    path: str
    old: str | None
    new: str | None
    change: int


@dataclass
class Section:
    """One field that differs."""

    field: str
    label: str
    kind: str  # "text", "list" or "json"
    phrase: FieldSummary
    blocks: Sequence[RowBlock] = made_by(default_factory=list)
    items: Sequence[ListItem] = made_by(default_factory=list)
    paths: Sequence[PathRow] = made_by(default_factory=list)
    left_out: int = 0
    among: str = ""

    @property
    def id(self) -> str:
        return f"{self.among or 'section'}-{self.field}"


@dataclass(frozen=True)
class CompareOptions:
    """How a comparison is shown; `among` tells its ids from those of another one on the same page."""

    side_by_side: bool = True
    unfolded: Collection[str] = ()
    among: str = ""

    def key(self, field: str, line: int | None) -> str:
        return "-".join(filter(None, [self.among, field, str(line)]))


def build_sections(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    *,
    side_by_side: bool = True,
    unfolded: Collection[str] = (),
    among: str = "",
) -> list[Section]:
    """A section for each field that differs; the folds named in `unfolded` are open."""
    numbers, asked = count(1), CompareOptions(side_by_side, unfolded, among)
    return [build_section(diff, numbers, asked) for diff in diff_snapshots(before, after)]


def build_section(diff: FieldDiff, numbers: Iterator[int], asked: CompareOptions) -> Section:
    made = Section(diff.field, FIELD_LABELS[diff.field], "json", summarize_field(diff), among=asked.among)
    if diff.field in TEXT_FIELDS:
        made.kind = "text"
        made.blocks, made.left_out = build_text_blocks(diff, numbers, asked)
    elif diff.field in LIST_FIELDS:
        made.kind = "list"
        made.items = list(build_list_items(diff.before or [], diff.after or [], numbers))
    else:
        found = diff_paths(diff.before, diff.after)
        made.paths = [build_path_row(path, next(numbers)) for path in islice(found, MAX_PATHS)]
        made.left_out = sum(1 for _ in found)
    return made


def build_text_blocks(diff: FieldDiff, numbers: Iterator[int], asked: CompareOptions) -> tuple[list[RowBlock], int]:
    """The rows of a text in blocks, and how many rows are left out because the page would grow too long."""
    blocks: list[RowBlock] = []
    row_count = 0
    for run in split_at_folds(fold_unchanged(diff_lines(diff.before or "", diff.after or ""))):
        if isinstance(run, Fold):
            key = asked.key(diff.field, run.lines[0].after)
            rows = [unchanged_row(line) for line in run.lines]
            if key in asked.unfolded:
                blocks.append(RowBlock(rows, key))
            else:
                blocks.append(RowBlock([DiffRow("folded", count=len(rows))], key, folded=True))
            continue
        rows = list(side_by_side_rows(run, numbers) if asked.side_by_side else unified_rows(run, numbers))
        blocks.append(RowBlock(rows[: max(MAX_ROWS - row_count, 0)]))
        row_count += len(rows)
    return blocks, max(row_count - MAX_ROWS, 0)


def split_at_folds(folded: Sequence[DiffLine | Fold]) -> Iterator[Fold | list[DiffLine]]:
    """Folds, and the lines between them together."""
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


def unified_rows(run: Sequence[DiffLine], numbers: Iterator[int]) -> Iterator[DiffRow]:
    """Lines one below the other."""
    before = "same"
    for line in run:
        begins = line.kind != "same" and before == "same"
        before = line.kind
        if line.kind == "same":
            yield unchanged_row(line)
        else:
            old, new = (build_side(line), None) if line.kind == "removed" else (None, build_side(line))
            yield DiffRow(line.kind, old, new, next(numbers) if begins else None)


def side_by_side_rows(run: Sequence[DiffLine], numbers: Iterator[int]) -> Iterator[DiffRow]:
    """Lines side by side: what was removed stands beside what was added in its place."""
    removed: list[DiffLine] = []
    added: list[DiffLine] = []
    for line in [*run, None]:
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
    parts = [TextSpan("equal", truncate_value(part.text)) for part in line.parts]
    return DiffRow("equal", Side(line.before or 0, parts), Side(line.after or 0, parts))


def build_side(line: DiffLine) -> Side:
    number = line.before if line.kind == "removed" else line.after
    return Side(number or 0, [build_span(part, line.kind) for part in line.parts])


def build_span(part: LinePart, kind: str) -> TextSpan:
    return TextSpan(kind if part.marked else "equal", part.text)


def build_list_items(before: Sequence[str], after: Sequence[str], numbers: Iterator[int]) -> Iterator[ListItem]:
    """Every key of two lists: what stayed, came, went or moved, and from where."""
    was = {key: index for index, key in enumerate(before, 1)}
    now = {key: index for index, key in enumerate(after, 1)}
    for item in diff_items(before, after):
        kind = "equal" if item.kind == "same" else item.kind
        change = None if kind == "equal" else next(numbers)
        yield ListItem(kind, item.item, was.get(item.item), now.get(item.item), change)


def build_path_row(path: Any, number: int) -> PathRow:
    old = None if path.kind == "added" else readable_json(path.before)
    new = None if path.kind == "removed" else readable_json(path.after)
    return PathRow(path.path or "(the whole value)", old, new, number)


def readable_json(value: Any) -> str:
    """A value as JSON that a person reads."""
    return truncate_value(json.dumps(value, ensure_ascii=False, indent=2 if isinstance(value, dict | list) else None))


def truncate_value(text: str) -> str:
    if len(text) <= MAX_JSON_LENGTH:
        return text
    return f"{text[:MAX_JSON_LENGTH]}… ({len(text) - MAX_JSON_LENGTH:,} more characters)"
