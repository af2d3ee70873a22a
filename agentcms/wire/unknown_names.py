"""Names in a request that nothing reads, each with the nearest name that is known."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import NamedTuple

from agentcms.wire.names import join_path, printable_key

MAX_UNKNOWN_NAMES = 20  # in one response; each is compared with all known names
MIN_SIMILARITY = 0.7


class UnknownName(NamedTuple):
    """A name that nothing reads, with the members of a warning: its path, the name and a sentence."""

    field: str
    key: str
    message: str


def find_unknown_names(names: Iterable[str], known: Collection[str], path: str = "") -> list[UnknownName]:
    """Return the names that are not known. `path` is that of the object that has them."""
    unknown = [name for name in names if name not in known]
    items = [
        UnknownName(join_path(path, name), printable_key(name), unknown_name_message(name, known))
        for name in unknown[:MAX_UNKNOWN_NAMES]
    ]
    if more := len(unknown) - len(items):
        items.append(UnknownName(path, "", f"{more} more names are unknown."))
    return items


def unknown_name_message(name: str, known: Collection[str]) -> str:
    nearest = find_nearest_name(name, known)
    return f"This name is unknown. Did you mean {nearest}?" if nearest else "This name is unknown. Nothing reads it."


def find_nearest_name(name: str, known: Collection[str]) -> str | None:
    """Return the known name that is most similar, or None. Case and underscores do not count."""
    by_letters = {_letters(candidate): candidate for candidate in known}
    # Cut: the comparison takes the product of both lengths.
    matches = get_close_matches(_letters(printable_key(name)), by_letters, n=1, cutoff=MIN_SIMILARITY)
    return by_letters[matches[0]] if matches else None


def _letters(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
