"""Three-way merge of configurations: by field, line of a text, entry of a list and key of an object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from agentcms.wire.canonical import canonical
from agentcms.wire.json_types import JSONMapping, JSONObject, JSONValue
from agents_app.configuration.field_labels import FIELD_LABELS
from agents_app.configuration.schema import WIRE_NAMES
from versions_app.compare.diff import diff_items, replaced_blocks, values_equal

MISSING = object()  # the value of a key that an object does not have


class Merge(NamedTuple):
    """A merged configuration in wire names. If changes touch, `touching` has their paths, and the rest is merged."""

    snapshot: JSONObject
    touching: list[str]

    @property
    def touching_labels(self) -> list[str]:
        """Return the labels of the fields in which changes touch, in the order of the paths."""
        fields = [path.partition(".")[0] for path in self.touching]
        return list(dict.fromkeys(FIELD_LABELS[field] for field in fields))


class ChangesTouch(Exception):
    """Both sides changed the same place of a value, so that it cannot be merged."""

    def __init__(self, path: str = "") -> None:
        super().__init__(path)
        self.path = path


class Hunk(NamedTuple):
    """Items `start` to `end` of a sequence, replaced by other items.

    The same insertion or deletion can have several places: an empty line can be added before or after another one.
    `first` and `last` are the limits of all of them.
    """

    start: int
    end: int
    items: tuple[str, ...]
    first: int
    last: int


def merge_snapshots(base: JSONMapping, mine: JSONMapping, theirs: JSONMapping) -> Merge:
    """Merge two snapshots that were both made from `base`. Where changes touch, the value of `mine` is used."""
    merged, touching = {**theirs}, []
    for field in WIRE_NAMES.values():
        values = base.get(field), mine.get(field), theirs.get(field)
        try:
            merged[field] = merge_field(field, *values)
        except ChangesTouch as error:
            merged[field] = values[1]
            touching.append(f"{field}.{error.path}" if error.path else field)
    return Merge(merged, touching)


def merge_field(field: str, base: JSONValue, mine: JSONValue, theirs: JSONValue) -> object:
    """Return the merged value of a field. Raise ChangesTouch."""
    if values_equal(mine, theirs) or values_equal(base, theirs):
        return mine
    if values_equal(base, mine):
        return theirs
    return MERGERS.get(field, merge_objects)(base, mine, theirs)


def merge_texts(base: str | None, mine: str | None, theirs: str | None) -> str:
    """Merge texts by line. Changes of adjacent lines touch. Raise ChangesTouch."""
    # Not by `splitlines()`: joined again, the lines must give the same text.
    lines = [(text or "").split("\n") for text in (base, mine, theirs)]
    return "\n".join(merge_sequences(*lines))


def merge_entries(
    base: Sequence[JSONValue] | None, mine: Sequence[JSONValue] | None, theirs: Sequence[JSONValue] | None
) -> list[JSONValue]:
    """Merge lists of objects in which the order counts. Raise ChangesTouch."""
    sides = [side or [] for side in (base, mine, theirs)]
    entries = {canonical(entry): entry for side in sides for entry in side}
    return [entries[text] for text in merge_sequences(*([canonical(entry) for entry in side] for side in sides))]


def merge_keys(base: Sequence[str] | None, mine: Sequence[str] | None, theirs: Sequence[str] | None) -> list[str]:
    """Merge lists of distinct keys. Keys that both sides added at one place do not touch. Raise ChangesTouch."""
    base, mine, theirs = base or [], mine or [], theirs or []
    common = {*base} & {*mine} & {*theirs}
    old, my_order, their_order = ([key for key in side if key in common] for side in (base, mine, theirs))
    if old not in (my_order, their_order) and my_order != their_order:
        raise ChangesTouch
    if moved_keys(base, mine) - {*theirs} or moved_keys(base, theirs) - {*mine}:
        raise ChangesTouch  # one side moved what the other removed
    # A side that reordered the keys leads. Each key that only the other one has comes after the key that precedes it
    # there.
    leading, other = (theirs, mine) if my_order == old else (mine, theirs)
    removed = {*base} - common
    merged = [key for key in leading if key not in removed]
    for index, key in enumerate(other):
        if key not in merged and key not in removed:
            before = next((previous for previous in reversed(other[:index]) if previous in merged), None)
            merged.insert(merged.index(before) + 1 if before is not None else 0, key)
    return merged


def moved_keys(before: Sequence[str], after: Sequence[str]) -> set[str]:
    return {item.item for item in diff_items(before, after) if item.kind == "moved"}


def merge_objects(base: JSONValue, mine: JSONValue, theirs: JSONValue, path: str = "") -> JSONValue:
    """Merge objects by key, at any depth. Other values that both sides changed touch. Raise ChangesTouch."""
    if not all(isinstance(value, dict) for value in (base, mine, theirs)):
        raise ChangesTouch(path)
    return dict(_merge_members(base, mine, theirs, path, merge_objects))


def merge_scorers(base: JSONValue, mine: JSONValue, theirs: JSONValue) -> JSONObject:
    """Merge scorers by key. The settings of one scorer depend on each other, so they are one value."""
    return dict(_merge_members(base or {}, mine or {}, theirs or {}, "", _reject_both))


def merge_models(base: JSONValue, mine: JSONValue, theirs: JSONValue) -> JSONObject:
    """Merge the settings of a model. Its provider and name depend on each other, so they are one value."""
    merged: JSONObject = merge_objects(base or {}, mine or {}, theirs or {})
    choices = [{key: side.get(key) for key in ("provider", "name")} for side in (merged, mine or {}, theirs or {})]
    if choices[0] not in choices[1:]:
        raise ChangesTouch("name")
    return merged


def _merge_members(
    base: JSONMapping,
    mine: JSONMapping,
    theirs: JSONMapping,
    path: str,
    merge_both: Callable[[JSONValue, JSONValue, JSONValue, str], JSONValue],
) -> Iterator[tuple[str, JSONValue]]:
    """Yield the members of a merged object. `merge_both` merges a value that both sides changed."""
    for key in dict.fromkeys([*theirs, *mine]):
        old, my_value, their_value = (side.get(key, MISSING) for side in (base, mine, theirs))
        if _same(my_value, their_value) or _same(old, their_value):
            value = my_value
        elif _same(old, my_value):
            value = their_value
        else:
            value = merge_both(old, my_value, their_value, f"{path}.{key}" if path else key)
        if value is not MISSING:
            yield key, value


def _same(left: object, right: object) -> bool:
    if left is MISSING or right is MISSING:
        return left is right
    return values_equal(left, right)


def _reject_both(base: object, mine: object, theirs: object, path: str) -> object:
    raise ChangesTouch(path)


def merge_sequences(base: Sequence[str], mine: Sequence[str], theirs: Sequence[str]) -> list[str]:
    """Apply the changes of both sides to a sequence. A change that both made is applied once. Raise ChangesTouch."""
    my_hunks, their_hunks = find_hunks(base, mine), find_hunks(base, theirs)
    same = {*my_hunks} & {*their_hunks}
    _reject_touching([hunk for hunk in my_hunks if hunk not in same], [h for h in their_hunks if h not in same])
    merged: list[str] = []
    position = 0
    for hunk in sorted({*my_hunks, *their_hunks}):
        merged += [*base[position : hunk.start], *hunk.items]
        position = hunk.end
    merged += base[position:]
    _reject_wrong_counts(base, mine, theirs, merged)
    return merged


def _reject_wrong_counts(
    base: Sequence[str], mine: Sequence[str], theirs: Sequence[str], merged: Sequence[str]
) -> None:
    """Raise ChangesTouch if an item is in a merged sequence more or less often than the changes of the sides say.

    Both sides can move an item from one place to two others: they delete it once, and each inserts it.
    """
    before, mine_counts, their_counts, after = map(Counter, (base, mine, theirs, merged))
    for item in {*before, *after}:
        changes = [mine_counts[item] - before[item], their_counts[item] - before[item]]
        if not min(*changes, sum(changes)) <= after[item] - before[item] <= max(*changes, sum(changes)):
            raise ChangesTouch


def _reject_touching(mine: Sequence[Hunk], theirs: Sequence[Hunk]) -> None:
    """Raise ChangesTouch if a hunk of one side overlaps or adjoins one of the other."""
    reached = {True: -1, False: -1}  # by side: the last position of its hunks so far
    sides = [*((hunk, True) for hunk in mine), *((hunk, False) for hunk in theirs)]
    for hunk, is_mine in sorted(sides, key=lambda side: side[0].first):
        if hunk.first <= reached[not is_mine]:
            raise ChangesTouch
        reached[is_mine] = max(reached[is_mine], hunk.last)


def find_hunks(base: Sequence[str], changed: Sequence[str]) -> list[Hunk]:
    """Return the changes from one sequence to another, each as far down as it can be."""
    hunks: list[Hunk] = []
    limit = len(base)
    # From the end, because a hunk may move down as far as the next one allows.
    for start, end, new_start, new_end in reversed(replaced_blocks(base, changed)):
        hunks.append(place_hunk(base, start, end, changed[new_start:new_end], limit))
        limit = start - 1  # one unchanged item stays between two hunks, so that their order is that of their positions
    return hunks[::-1]


def place_hunk(base: Sequence[str], start: int, end: int, items: Sequence[str], limit: int) -> Hunk:
    """Return a hunk, moved down to at most `limit` if it only inserts or only deletes."""
    if items and end > start:
        return Hunk(start, end, tuple(items), start, end)
    moving = items or base[start:end]
    size = len(moving)
    down = up = 0
    while end + down < len(base) and base[end + down] == moving[down % size]:
        down += 1
    while start - up > 0 and base[start - up - 1] == moving[-1 - up % size]:
        up += 1
    shift = min(down, limit - end)
    rotated = (*items[shift % size :], *items[: shift % size]) if items else ()
    return Hunk(start + shift, end + shift, rotated, start - up, end + down)


MERGERS: dict[str, Callable[[JSONValue, JSONValue, JSONValue], JSONValue]] = {
    "description": merge_texts,
    "instructions": merge_texts,
    "model": merge_models,
    "scorers": merge_scorers,
    **dict.fromkeys(("tools", "workflows", "agents", "integrationTools"), merge_keys),
    **dict.fromkeys(("inputProcessors", "outputProcessors"), merge_entries),
}
