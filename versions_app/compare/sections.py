"""Two snapshots as the sections of a page: texts by line and word, lists by item, JSON by path."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as made_by
from itertools import count, islice, zip_longest
from typing import Any, NamedTuple

from agents_app.configuration.display import FIELD_LABELS
from versions_app.compare.diff import FieldDiff, Fold, Line, Part, compare, fold, items, lines, paths
from versions_app.compare.summary import Phrase, phrase

TEXTS = ("name", "description", "instructions", "memory")
LISTS = ("tools", "workflows", "agents", "integrationTools")

# What a page can show and a person can read; beyond it the page says how much more there is.
MOST_ROWS = 3000
MOST_PATHS = 300
MOST_CHARACTERS = 4000


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
class Block:
    """Rows that stand together: a fold is one that can be opened alone; `key` names it."""

    rows: Sequence[DiffRow]
    key: str = ""
    folded: bool = False


class Item(NamedTuple):
    """A key in a list that was compared."""

    kind: str  # "equal", "added", "removed" or "moved"
    key: str
    was: int | None
    now: int | None
    change: int | None


class Path(NamedTuple):
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
    phrase: Phrase
    blocks: Sequence[Block] = made_by(default_factory=list)
    items: Sequence[Item] = made_by(default_factory=list)
    paths: Sequence[Path] = made_by(default_factory=list)
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


def sections(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    *,
    side_by_side: bool = True,
    unfolded: Collection[str] = (),
    among: str = "",
) -> list[Section]:
    """A section for each field that differs; the folds named in `unfolded` are open."""
    numbers, asked = count(1), CompareOptions(side_by_side, unfolded, among)
    return [section(diff, numbers, asked) for diff in compare(before, after)]


def section(diff: FieldDiff, numbers: Iterator[int], asked: CompareOptions) -> Section:
    made = Section(diff.field, FIELD_LABELS[diff.field], "json", phrase(diff), among=asked.among)
    if diff.field in TEXTS:
        made.kind = "text"
        made.blocks, made.left_out = text_blocks(diff, numbers, asked)
    elif diff.field in LISTS:
        made.kind = "list"
        made.items = list(list_items(diff.before or [], diff.after or [], numbers))
    else:
        found = paths(diff.before, diff.after)
        made.paths = [json_path(path, next(numbers)) for path in islice(found, MOST_PATHS)]
        made.left_out = sum(1 for _ in found)
    return made


def text_blocks(diff: FieldDiff, numbers: Iterator[int], asked: CompareOptions) -> tuple[list[Block], int]:
    """The rows of a text in blocks, and how many rows are left out because the page would grow too long."""
    blocks: list[Block] = []
    shown = 0
    for run in runs(fold(lines(diff.before or "", diff.after or ""))):
        if isinstance(run, Fold):
            key = asked.key(diff.field, run.lines[0].after)
            rows = [equal(line) for line in run.lines]
            if key in asked.unfolded:
                blocks.append(Block(rows, key))
            else:
                blocks.append(Block([DiffRow("folded", count=len(rows))], key, folded=True))
            continue
        rows = list(beside(run, numbers) if asked.side_by_side else below(run, numbers))
        blocks.append(Block(rows[: max(MOST_ROWS - shown, 0)]))
        shown += len(rows)
    return blocks, max(shown - MOST_ROWS, 0)


def runs(folded: Sequence[Line | Fold]) -> Iterator[Fold | list[Line]]:
    """Folds, and the lines between them together."""
    between: list[Line] = []
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


def below(run: Sequence[Line], numbers: Iterator[int]) -> Iterator[DiffRow]:
    """Lines one below the other."""
    before = "same"
    for line in run:
        begins = line.kind != "same" and before == "same"
        before = line.kind
        if line.kind == "same":
            yield equal(line)
        else:
            old, new = (half(line), None) if line.kind == "removed" else (None, half(line))
            yield DiffRow(line.kind, old, new, next(numbers) if begins else None)


def beside(run: Sequence[Line], numbers: Iterator[int]) -> Iterator[DiffRow]:
    """Lines side by side: what was removed stands beside what was added in its place."""
    removed: list[Line] = []
    added: list[Line] = []
    for line in [*run, None]:
        if line is not None and line.kind != "same":
            (removed if line.kind == "removed" else added).append(line)
            continue
        for index, (old, new) in enumerate(zip_longest(removed, added)):
            kind = "changed" if old and new else "removed" if old else "added"
            change = next(numbers) if index == 0 else None
            yield DiffRow(kind, half(old) if old else None, half(new) if new else None, change)
        removed, added = [], []
        if line is not None:
            yield equal(line)


def equal(line: Line) -> DiffRow:
    parts = [TextSpan("equal", clipped(part.text)) for part in line.parts]
    return DiffRow("equal", Side(line.before or 0, parts), Side(line.after or 0, parts))


def half(line: Line) -> Side:
    number = line.before if line.kind == "removed" else line.after
    return Side(number or 0, [run(part, line.kind) for part in line.parts])


def run(part: Part, kind: str) -> TextSpan:
    return TextSpan(kind if part.marked else "equal", part.text)


def list_items(before: Sequence[str], after: Sequence[str], numbers: Iterator[int]) -> Iterator[Item]:
    """Every key of two lists: what stayed, came, went or moved, and from where."""
    was = {key: index for index, key in enumerate(before, 1)}
    now = {key: index for index, key in enumerate(after, 1)}
    for item in items(before, after):
        kind = "equal" if item.kind == "same" else item.kind
        change = None if kind == "equal" else next(numbers)
        yield Item(kind, item.item, was.get(item.item), now.get(item.item), change)


def json_path(path: Any, number: int) -> Path:
    old = None if path.kind == "added" else shown(path.before)
    new = None if path.kind == "removed" else shown(path.after)
    return Path(path.path or "(the whole value)", old, new, number)


def shown(value: Any) -> str:
    """A value as JSON that a person reads."""
    return clipped(json.dumps(value, ensure_ascii=False, indent=2 if isinstance(value, dict | list) else None))


def clipped(text: str) -> str:
    if len(text) <= MOST_CHARACTERS:
        return text
    return f"{text[:MOST_CHARACTERS]}… ({len(text) - MOST_CHARACTERS:,} more characters)"
