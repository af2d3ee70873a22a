"""Texts of a comparison page: rows of lines, in parts that are short enough for a page."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest
from typing import NamedTuple

from agentcms.plural import pluralize
from versions_app.compare.diff import DiffLine, FieldDiff, Fold, LinePart, diff_lines, fold_unchanged
from versions_app.compare.path_rows import truncate_text

# A page shows a part of a long text, with a link to the next one: a browser takes half a second for 2,000 rows.
ROWS_PER_PART = 300
CHARACTERS_PER_PART = 60_000  # of changed lines on both sides

# The old and the new line of a row.
Pair = tuple[DiffLine | None, DiffLine | None]


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

    kind: str  # "equal", "added", "removed" or "changed"
    old: Side | None = None
    new: Side | None = None
    change: int | None = None

    @property
    def spans(self) -> Sequence[TextSpan]:
        side = self.new or self.old
        return side.spans if side else ()


class HiddenRows(NamedTuple):
    """Rows that a request shows."""

    kind: str  # "unchanged" lines between two changes, or the part "before" or "after" the current one
    size: int
    following: int = 0  # rows from here to the end of the text

    @property
    def label(self) -> str:
        """The text of the link that shows the rows."""
        if self.kind == "after" and self.size < self.following:
            return f"Show {self.size:,} more of {self.following:,} lines"
        return f"Show the {self.note} before" if self.kind == "before" else f"Show {self.note}"

    @property
    def note(self) -> str:
        """The rows in words, for a page that cannot show them."""
        adjective = {"unchanged": "unchanged ", "after": "more "}.get(self.kind, "")
        lines = self.following or self.size
        return pluralize(lines, f"{adjective}line")


@dataclass
class RowBlock:
    """Consecutive rows, or what a request shows in their place. It names them by the `key`."""

    rows: Sequence[DiffRow] = ()
    key: str = ""
    hidden: HiddenRows | None = None

    @property
    def selector(self) -> str:
        """The elements of the response that replace the hidden rows: for a part of a text also what follows it."""
        target = f"#fold-{self.key}"
        return f"{target}, {target} ~ tbody" if self.hidden and self.hidden.kind == "after" else target


@dataclass
class PairBlock:
    """Consecutive rows before they are built. Unchanged lines that are hidden until a user opens them have a key."""

    pairs: Sequence[Pair]
    key: str = ""


@dataclass(frozen=True)
class CompareOptions:
    """Display options. `id_prefix` keeps element IDs unique if a page has two comparisons."""

    side_by_side: bool = True
    unfolded: Collection[str] = ()
    id_prefix: str = ""
    is_whole: bool = False  # long texts are not divided into parts

    def key(self, field: str, place: object) -> str:
        return "-".join(filter(None, [self.id_prefix, field, str(place)]))


def build_text_blocks(diff: FieldDiff, numbers: Iterator[int], options: CompareOptions) -> list[RowBlock]:
    """Return the rows of a part of a text in blocks: of the part that the request opens, or of the first one."""
    text = build_pair_blocks(diff, options)
    parts = [[*text]] if options.is_whole else divide_text(text)
    keys = [options.key(diff.field, f"part-{number}") for number in range(1, len(parts) + 1)]
    opened = (any(key in options.unfolded for key in part_keys(*part)) for part in zip(keys, parts, strict=True))
    current = next((index for index, is_opened in enumerate(opened) if is_opened), 0)
    sizes = [sum(len(block.pairs) for block in part) for part in parts]
    blocks: list[RowBlock] = []
    if current > 0:
        # Empty: the target of the link to this part. Its first block may be the target of another link.
        blocks = [
            RowBlock(key=keys[current - 1], hidden=HiddenRows("before", sizes[current - 1])),
            RowBlock(key=keys[current]),
        ]
    blocks += [build_block(block, numbers, options) for block in parts[current]]
    if following := sizes[current + 1 :]:
        blocks.append(RowBlock(key=keys[current + 1], hidden=HiddenRows("after", following[0], sum(following))))
    return blocks


def part_keys(key: str, part: Sequence[PairBlock]) -> Iterator[str]:
    """Yield the keys of a part and of its folds."""
    yield key
    for block in part:
        if block.key:
            yield block.key


def build_pair_blocks(diff: FieldDiff, options: CompareOptions) -> Iterator[PairBlock]:
    """Yield the rows of a text, those of each fold in a block of their own."""
    for run in split_at_folds(fold_unchanged(diff_lines(diff.before or "", diff.after or ""))):
        if isinstance(run, Fold):
            yield PairBlock([(line, line) for line in run.lines], options.key(diff.field, run.lines[0].after))
        else:
            yield PairBlock([*(side_by_side_pairs(run) if options.side_by_side else unified_pairs(run))])


def divide_text(blocks: Iterable[PairBlock]) -> list[list[PairBlock]]:
    """Divide blocks into parts. A fold stays whole and counts as one row, so that opening it moves no part."""
    parts: list[list[PairBlock]] = [[]]
    rows = characters = 0
    for block in blocks:
        start = 0
        for index, pair in enumerate(block.pairs[:1] if block.key else block.pairs):
            if rows == ROWS_PER_PART or characters >= CHARACTERS_PER_PART:
                if index > start:
                    parts[-1].append(PairBlock(block.pairs[start:index]))
                parts.append([])
                start, rows, characters = index, 0, 0
            rows += 1
            characters += sum(len(line.text) for line in pair if line and line.kind != "same")
        parts[-1].append(PairBlock(block.pairs[start:], block.key))
    return parts


def build_block(block: PairBlock, numbers: Iterator[int], options: CompareOptions) -> RowBlock:
    """Return the rows of a block, or its number of rows if it is folded."""
    if block.key and block.key not in options.unfolded:
        return RowBlock(key=block.key, hidden=HiddenRows("unchanged", len(block.pairs)))
    return RowBlock([*build_diff_rows(block.pairs, numbers)], block.key)


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


def unified_pairs(lines: Sequence[DiffLine]) -> Iterator[Pair]:
    """Yield a row for each line. A part of a long change has both its old and its new lines."""
    for is_unchanged, group in groupby(side_by_side_pairs(lines), lambda pair: pair[0] is pair[1]):
        pairs = [*group]
        if is_unchanged:
            yield from pairs
            continue
        # Half a part, because a pair may be two rows: otherwise, a part of a long change could have old lines only.
        for start in range(0, len(pairs), ROWS_PER_PART // 2):
            replaced = pairs[start : start + ROWS_PER_PART // 2]
            yield from ((old, None) for old, _ in replaced if old)
            yield from ((None, new) for _, new in replaced if new)


def side_by_side_pairs(lines: Sequence[DiffLine]) -> Iterator[Pair]:
    """Yield rows for the side-by-side layout, each with a removed line and the added line in its place."""
    removed: list[DiffLine] = []
    added: list[DiffLine] = []
    for line in [*lines, None]:
        if line is not None and line.kind != "same":
            (removed if line.kind == "removed" else added).append(line)
            continue
        yield from zip_longest(removed, added)
        removed, added = [], []
        if line is not None:
            yield line, line


def build_diff_rows(pairs: Iterable[Pair], numbers: Iterator[int]) -> Iterator[DiffRow]:
    """Yield rows for display. Consecutive changed rows are one change, which takes a number."""
    was_changed = False
    for old, new in pairs:
        if old is new and old is not None:
            was_changed = False
            yield unchanged_row(old)
            continue
        kind = "changed" if old and new else "removed" if old else "added"
        change = None if was_changed else next(numbers)
        was_changed = True
        yield DiffRow(kind, build_side(old) if old else None, build_side(new) if new else None, change)


def unchanged_row(line: DiffLine) -> DiffRow:
    spans = [TextSpan("equal", truncate_text(line.text))]
    return DiffRow("equal", Side(line.before or 0, spans), Side(line.after or 0, spans))


def build_side(line: DiffLine) -> Side:
    number = line.before if line.kind == "removed" else line.after
    return Side(number or 0, [build_span(part, line.kind) for part in line.parts])


def build_span(part: LinePart, kind: str) -> TextSpan:
    return TextSpan(kind if part.marked else "equal", part.text)
