"""The state of a list in its URL: search, filters and sorting."""

from __future__ import annotations

from typing import NamedTuple

from django.http import QueryDict
from django.utils.http import urlencode

from agentcms.plural import pluralize


class Chip(NamedTuple):
    """An active filter and the URL of the list without it."""

    name: str
    value: str
    without: str


class SortChoice(NamedTuple):
    """An order of the list."""

    label: str
    href: str
    is_current: bool


def encode_query(**values: str | int) -> str:
    """Return the query of a URL, without blank values."""
    return urlencode({name: value for name, value in values.items() if value})


def search_text(params: QueryDict) -> str:
    """Return the text for which a list is searched. PostgreSQL refuses a NUL in it."""
    return params.get("q", "").replace("\0", "").strip()


def archived_matches_note(count: int, noun: str) -> str:
    """Return the sentence that archived rows match a search, or a blank text if there are none."""
    return (
        f"{pluralize(count, f'archived {noun}')} {'matches' if count == 1 else 'match'} the search." if count else ""
    )


class ListState:
    """The base of the state of a list, which is searched, filtered and sorted by its query string."""

    params: QueryDict

    def url(self, **changes: str | None) -> str:
        """Return the query string with the changes applied, at the first page; None removes a parameter."""
        query = self.params.copy()
        for name, value in {"page": None, **changes}.items():
            query.pop(name, None)
            if value is not None:
                query[name] = value
        return f"?{query.urlencode()}"

    @property
    def other_params(self) -> list[tuple[str, str]]:
        """The parameters that a form with the ID of an agent sends again. A version is one of another agent."""
        lists = ((name, values) for name, values in self.params.lists() if name not in ("agent", "page", "version"))
        return [(name, value) for name, values in lists for value in values]

    @property
    def query(self) -> str:
        """The query string without a page, for links of the pagination."""
        return self.url()[1:]
