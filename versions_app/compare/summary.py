"""What differs between two snapshots, in words short enough for one line of a history."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from agents_app.configuration.display import FIELD_LABELS
from versions_app.compare.diff import FieldDiff, compare, items, line_counts, paths, same

MOST_NAMED = 3  # keys named before the rest is counted
LONGEST = 40  # characters of one name or value


class Phrase(NamedTuple):
    """One changed field in words: what came, what went, and what is neither."""

    label: str
    added: str = ""
    removed: str = ""
    text: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, self))


def summarize(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Phrase]:
    """A phrase for each field that differs, in the order in which an agent is read."""
    return [phrase(diff) for diff in compare(before, after)]


def in_words(phrases: Sequence[Phrase]) -> str:
    """The phrases as one line: `Instructions +12 −3 · Tools +search · Model a → b`."""
    return " · ".join(map(str, phrases)) or "Nothing differs"


def phrase(diff: FieldDiff) -> Phrase:
    """One changed field in words."""
    return SAID.get(diff.field, _object)(FIELD_LABELS[diff.field], diff.before, diff.after)


def named(fields: Sequence[str]) -> list[Phrase]:
    """Changed fields of which no more is known, because what they were compared with is gone."""
    return [Phrase(FIELD_LABELS[field], text="changed") for field in fields if field in FIELD_LABELS]


def _lines(label: str, before: str | None, after: str | None) -> Phrase:
    added, removed = line_counts(before or "", after or "")
    return Phrase(label, f"+{added}" if added else "", f"−{removed}" if removed else "")


def _value(label: str, before: Any, after: Any) -> Phrase:
    return Phrase(label, text=f"{_short(before)} → {_short(after)}")


def _text(label: str, before: Any, after: Any) -> Phrase:
    if not (before and after):
        return Phrase(label, text="added" if after else "removed")
    return Phrase(label, text="changed")


def _keys(label: str, before: Sequence[str] | None, after: Sequence[str] | None) -> Phrase:
    kinds = items(before or [], after or [])
    added, removed = ([item.item for item in kinds if item.kind == kind] for kind in ("added", "removed"))
    return Phrase(label, _signed("+", added), _signed("−", removed), "" if added or removed else "reordered")


def _processors(label: str, before: Any, after: Any) -> Phrase:
    old, new = ([_processor_key(each) for each in side or []] for side in (before, after))
    if len(set(old)) == len(old) and len(set(new)) == len(new) and old != new:
        return _keys(label, old, new)
    return Phrase(label, text="changed")


def _processor_key(processor: Mapping[str, Any]) -> str:
    return str(processor.get("key", processor.get("id", "unnamed")))


def _model(label: str, before: Any, after: Any) -> Phrase:
    before, after = before or {}, after or {}
    if before.get("provider") != after.get("provider"):
        old, new = (f"{each.get('provider', '–')}/{each.get('name', '–')}" for each in (before, after))
        return _value(label, old, new)
    if before.get("name") != after.get("name"):
        return _value(label, before.get("name"), after.get("name"))
    return _object(label, before, after)


def _object(label: str, before: Any, after: Any) -> Phrase:
    before, after = before or {}, after or {}
    added, removed = [key for key in after if key not in before], [key for key in before if key not in after]
    changed = sorted(key for key in before if key in after and not same(before[key], after[key]))
    only = [*islice(paths(before[changed[0]], after[changed[0]], changed[0]), 2)] if len(changed) == 1 else []
    text = f"{_listed(changed)} changed" if changed else ""
    if len(only) == 1 and only[0].kind == "changed":
        text = f"{_short(only[0].path)} {_short(only[0].before)} → {_short(only[0].after)}"
    return Phrase(label, _signed("+", added), _signed("−", removed), text)


def _signed(sign: str, keys: Sequence[str]) -> str:
    shown = [f"{sign}{_short(key)}" for key in keys[:MOST_NAMED]]
    return " ".join([*shown, f"{sign}{len(keys) - MOST_NAMED} more"] if len(keys) > MOST_NAMED else shown)


def _listed(keys: Sequence[str]) -> str:
    shown = [_short(key) for key in keys[:MOST_NAMED]]
    return ", ".join([*shown, f"{len(keys) - MOST_NAMED} more"] if len(keys) > MOST_NAMED else shown)


def _short(value: Any) -> str:
    """A value in a few characters, on one line."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return "{…}" if isinstance(value, dict) else "[…]"
    text = " ".join(str(value).split()) or "nothing"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


SAID: dict[str, Callable[[str, Any, Any], Phrase]] = {
    "name": _value,
    "description": _text,
    "instructions": _lines,
    "model": _model,
    "memory": _value,
    "inputProcessors": _processors,
    "outputProcessors": _processors,
    **dict.fromkeys(("tools", "workflows", "agents", "integrationTools"), _keys),
}
