"""The rows of a long list in the editor: all that are selected, and as many of the others as a page can have."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from agentcms.db.text_conditions import MAX_SEARCH_WORDS

Row = TypeVar("Row")
OtherRow = TypeVar("OtherRow")


@dataclass(frozen=True)
class ListedRows(Generic[Row]):
    """The rows in a list, how many more a search found, and its text."""

    rows: list[Row]
    more: int
    query: str

    def with_rows(self, rows: list[OtherRow]) -> ListedRows[OtherRow]:
        """Return the same part of the list with other rows, such as those of its keys."""
        return ListedRows(rows, self.more, self.query)


def find_listed_keys(
    keys: Iterable[str], selected: Collection[str], query: str, limit: int, text_of: Callable[[str], str]
) -> ListedRows[str]:
    """Return the selected keys, which the form has to send, and the first others that contain all words of a query.

    `limit` is the most keys that are not selected. `text_of` returns the text of a row, in lower case.
    """
    words = query.lower().split()[:MAX_SEARCH_WORDS]
    listed: list[str] = []
    others = 0
    for key in keys:
        if key not in selected:
            text = text_of(key) if words else ""
            if not all(word in text for word in words):
                continue
            others += 1
            if others > limit:
                continue
        listed.append(key)
    return ListedRows(listed, max(others - limit, 0), query)
