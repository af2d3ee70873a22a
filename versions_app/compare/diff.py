"""Differences between two snapshots: by field, JSON path, list item, line and word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any, NamedTuple

from rapidfuzz.distance import LCSseq

from agentcms.wire.canonical import json_equal
from agentcms.wire.json_types import JSONMapping, JSONValue
from agents_app.configuration.schema import WIRE_NAMES

# The comparison needs one bit of memory per pair of items. Above the limit, the changed middle counts as replaced.
MAX_PAIRS = 200_000_000
MAX_WORD_PAIRS = 20_000_000  # two lines of about 2000 words each
CONTEXT_LINES = 3  # unchanged lines shown around a change


UNSET: tuple[object, ...] = (None, "", [], {})


class FieldDiff(NamedTuple):
    """One field that differs, by its wire name."""

    field: str
    before: JSONValue
    after: JSONValue


class PathDiff(NamedTuple):
    """One value inside a JSON field that was added, removed or changed."""

    path: str
    kind: str  # "added", "removed" or "changed"
    before: JSONValue = None
    after: JSONValue = None


class ItemDiff(NamedTuple):
    """One item of a list. A `moved` item is in both lists, in a different order."""

    item: str
    kind: str  # "same", "added", "removed" or "moved"


class LinePart(NamedTuple):
    """Consecutive characters of a line. `marked` is true where they changed."""

    text: str
    marked: bool


class ReplacedLine:
    """An old line and the new one in its place."""

    def __init__(self, old: str, new: str) -> None:
        self.old, self.new = old, new

    @cached_property
    def parts(self) -> tuple[list[LinePart], list[LinePart]]:
        """Both lines with their changed words marked. Compared when asked: a page shows only some lines."""
        return _diff_words(self.old, self.new)


@dataclass(frozen=True)
class DiffLine:
    """A line of a text diff. Its number is None on a side that does not have the line."""

    kind: str  # "same", "added" or "removed"
    before: int | None
    after: int | None
    text: str
    replaced: ReplacedLine | None = None  # with the line in whose place it stands, or that stands in its place

    @property
    def parts(self) -> list[LinePart]:
        """The line with its changed words marked."""
        if self.replaced is None:
            return [LinePart(self.text, False)]
        return self.replaced.parts[0 if self.kind == "removed" else 1]


class Fold(NamedTuple):
    """Consecutive unchanged lines that a page hides until a user opens them."""

    lines: Sequence[DiffLine]
    kind: str = "fold"


def values_equal(before: object, after: object) -> bool:
    """Return True if two values of snapshots are the same JSON; 1 and true differ."""
    # What Python finds unequal differs in the JSON of snapshots too, whose numbers are normalized. Only where it finds
    # equality may the types differ, so most values that changed are not encoded.
    return before is after or (before == after and json_equal(before, after))


def diff_snapshots(before: JSONMapping, after: JSONMapping) -> list[FieldDiff]:
    """Return the fields that differ, in the order of the agent's fields."""
    pairs = ((wire, before.get(wire), after.get(wire)) for wire in WIRE_NAMES.values())
    return [FieldDiff(*pair) for pair in pairs if not values_equal(pair[1], pair[2])]


def visible_differences(before: JSONMapping, after: JSONMapping) -> list[FieldDiff]:
    """Return the fields that differ for a reader: a field that is absent equals one that is empty."""
    diffs = diff_snapshots(before, after)
    return [diff for diff in diffs if not (diff.before in UNSET and diff.after in UNSET)]


def changed_fields(before: JSONMapping, after: JSONMapping) -> list[str]:
    """Return the wire names of the fields that differ."""
    return [diff.field for diff in diff_snapshots(before, after)]


def diff_paths(before: object, after: object, path: str = "") -> Iterator[PathDiff]:
    """Yield every path at which two JSON values differ. Lists are compared by position."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            yield from _diff_member(before, after, key, f"{path}.{key}" if path else key)
    elif isinstance(before, list) and isinstance(after, list):
        old, new = dict(enumerate(before)), dict(enumerate(after))
        for index in range(max(len(old), len(new))):
            yield from _diff_member(old, new, index, f"{path}[{index}]")
    elif not values_equal(before, after):
        yield PathDiff(path, "changed", before, after)


def _diff_member(before: Mapping[Any, Any], after: Mapping[Any, Any], key: object, path: str) -> Iterator[PathDiff]:
    if key not in before:
        yield PathDiff(path, "added", after=after[key])
    elif key not in after:
        yield PathDiff(path, "removed", before=before[key])
    else:
        yield from diff_paths(before[key], after[key], path)


def diff_items(before: Sequence[str], after: Sequence[str]) -> list[ItemDiff]:
    """Compare two lists of distinct keys: the items of `after`, then the removed ones."""
    blocks = _opcodes(before, after, MAX_PAIRS)
    in_order = {key for tag, start, end, *_ in blocks if tag == "equal" for key in before[start:end]}
    common = set(before) & set(after)
    now = [ItemDiff(key, "same" if key in in_order else "moved" if key in common else "added") for key in after]
    return now + [ItemDiff(key, "removed") for key in before if key not in common]


def diff_lines(before: str, after: str) -> list[DiffLine]:
    """Compare two texts line by line. Of replaced lines, those of equal position are compared by word."""
    old, new = before.split("\n") if before else [], after.split("\n") if after else []
    result: list[DiffLine] = []
    for tag, i1, i2, j1, j2 in _opcodes(old, new, MAX_PAIRS):
        if tag == "equal":
            result += [DiffLine("same", i1 + n + 1, j1 + n + 1, text) for n, text in enumerate(old[i1:i2])]
        else:
            result += _diff_replaced_lines(old[i1:i2], new[j1:j2], i1, j1)
    return result


def fold_unchanged(diff: Sequence[DiffLine]) -> list[DiffLine | Fold]:
    """Replace unchanged lines that are further than CONTEXT_LINES from a change by folds."""
    near: set[int] = set()
    for index, line in enumerate(diff):
        if line.kind != "same":
            near.update(range(index - CONTEXT_LINES, index + CONTEXT_LINES + 1))
    result: list[DiffLine | Fold] = []
    hidden: list[DiffLine] = []
    for index, line in enumerate(diff):
        if index not in near:
            hidden.append(line)
            continue
        result += _fold_if_shorter(hidden)
        hidden = []
        result.append(line)
    return result + _fold_if_shorter(hidden)


def _fold_if_shorter(run: list[DiffLine]) -> list[DiffLine | Fold]:
    """Return a fold for the lines. A single line stays visible: its fold would be as tall."""
    return [Fold(run)] if len(run) > 1 else list(run)


def line_counts(before: str, after: str) -> tuple[int, int]:
    """Return the numbers of added and of removed lines."""
    old, new = before.split("\n") if before else [], after.split("\n") if after else []
    changed = replaced_blocks(old, new)
    return sum(j2 - j1 for *_, j1, j2 in changed), sum(i2 - i1 for i1, i2, *_ in changed)


def replaced_blocks(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int, int, int]]:
    """Return where two sequences differ, in order: start and end in the old one, start and end in the new one."""
    return [block for tag, *block in _opcodes(old, new, MAX_PAIRS) if tag != "equal"]  # type: ignore[misc]


def _diff_replaced_lines(old: Sequence[str], new: Sequence[str], i1: int, j1: int) -> list[DiffLine]:
    """Return the removed lines, then the added ones."""
    pairs = [ReplacedLine(*pair) for pair in zip(old, new, strict=False)]
    removed, added = zip_longest(old, pairs), zip_longest(new, pairs)
    return [DiffLine("removed", i1 + n + 1, None, *line) for n, line in enumerate(removed)] + [
        DiffLine("added", None, j1 + n + 1, *line) for n, line in enumerate(added)
    ]


def _diff_words(before: str, after: str) -> tuple[list[LinePart], list[LinePart]]:
    """Mark the words in which two lines differ, unless they share less than a quarter of the old words."""
    old, new = _tokenize(before), _tokenize(after)
    left: list[LinePart] = []
    right: list[LinePart] = []
    shared = 0
    for tag, i1, i2, j1, j2 in _opcodes(old, new, MAX_WORD_PAIRS):
        if i2 > i1:
            left.append(LinePart("".join(old[i1:i2]), tag != "equal"))
        if j2 > j1:
            right.append(LinePart("".join(new[j1:j2]), tag != "equal"))
        # Only words: almost all lines have spaces and punctuation in common.
        shared += sum(token.isalnum() for token in old[i1:i2]) if tag == "equal" else 0
    if shared * 4 < max(sum(token.isalnum() for token in old), 1):
        return [LinePart(before, False)], [LinePart(after, False)]
    return left, right


def _tokenize(line: str) -> list[str]:
    return re.findall(r"\w+|\s+|[^\w\s]", line)


def _equal_blocks(before: Sequence[str], after: Sequence[str]) -> list[Any]:
    # Not by difflib, which is written in Python: long lines would keep a process busy.
    return [code for code in LCSseq.opcodes(before, after) if code.tag == "equal"]


def _opcodes(old: Sequence[str], new: Sequence[str], max_pairs: int) -> Iterator[tuple[str, int, int, int, int]]:
    """Yield alternating equal and replaced blocks. Above `max_pairs` the whole middle is one replaced block."""
    # Most edits change few lines: without the equal ends, the rest is small enough to compare.
    head = _common_prefix_length(old, new)
    tail = _common_prefix_length(old[head:][::-1], new[head:][::-1])
    a, b = old[head : len(old) - tail], new[head : len(new) - tail]
    if head:
        yield "equal", 0, head, 0, head
    if len(a) * len(b) > max_pairs:
        yield "replace", head, head + len(a), head, head + len(b)
    elif a or b:
        yield from _changed_blocks(a, b, head)
    if tail:
        yield "equal", len(old) - tail, len(old), len(new) - tail, len(new)


def _changed_blocks(a: Sequence[str], b: Sequence[str], offset: int) -> Iterator[tuple[str, int, int, int, int]]:
    i = j = 0
    for block in [*_equal_blocks(a, b), None]:
        i2, j2 = (block.src_start, block.dest_start) if block else (len(a), len(b))
        if i2 > i or j2 > j:
            yield "replace", i + offset, i2 + offset, j + offset, j2 + offset
        if block:
            i, j = block.src_end, block.dest_end
            yield "equal", i2 + offset, i + offset, j2 + offset, j + offset


def _common_prefix_length(old: Sequence[str], new: Sequence[str]) -> int:
    """Return the number of leading items that both have."""
    for index, (before, after) in enumerate(zip(old, new, strict=False)):
        if before != after:
            return index
    return min(len(old), len(new))
