"""The rows of a long list in the editor: all that are selected, and as many of the others as a page can have."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

MAX_LIST_SEARCH_WORDS = 10


@dataclass(frozen=True)
class ListedRows:
    """The keys of the rows in a list, how many others a search found, and its text."""

    keys: list[str]
    more: int
    query: str


def find_listed_rows(
    keys: Iterable[str], selected: Collection[str], query: str, limit: int, text_of: Callable[[str], str]
) -> ListedRows:
    """Return the selected rows, which the form has to send, and the first others that contain all words of a query.

    `limit` is the most rows that are not selected. `text_of` returns the text of a row, in lower case.
    """
    words = query.lower().split()[:MAX_LIST_SEARCH_WORDS]
    listed: list[str] = []
    others = 0
    for key in keys:
        if key not in selected:
            if not all(word in text_of(key) for word in words):
                continue
            others += 1
            if others > limit:
                continue
        listed.append(key)
    return ListedRows(listed, max(others - limit, 0), query)
