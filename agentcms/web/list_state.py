"""What the address of a list asks for, and the addresses that ask for a little more or less."""

from __future__ import annotations

from typing import NamedTuple

from django.http import QueryDict


class Chip(NamedTuple):
    """A filter that is set, and the address of the list without it."""

    name: str
    value: str
    without: str


class ListState:
    """A list that is searched, filtered and sorted by its address."""

    asked: QueryDict

    def address(self, **changed: str | None) -> str:
        """The query of the same list with some words changed; it begins with its first page again."""
        query = self.asked.copy()
        for name, value in {"page": None, **changed}.items():
            query.pop(name, None)
            if value is not None:
                query[name] = value
        return f"?{query.urlencode()}"

    @property
    def query(self) -> str:
        return self.address()[1:]


def parse_number(text: str) -> int:
    """The whole number that an address names, such as a version's, or 0 for what is none."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
