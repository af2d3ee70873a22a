"""Pagination by page number and by cursor."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db.models import Model, QuerySet

from agentcms.db.batches import in_batches
from agentcms.errors import BadRequest
from agentcms.wire.json_types import JSONObject
from agentcms.wire.unknown_names import UnknownName

LargeRow = TypeVar("LargeRow", bound=Model)
LargeKey = TypeVar("LargeKey")

# Before this limit, 16 requests for pages of 40 agents of 4.4 MB took 7.5 GB of memory.
MAX_PAGE_MB = 64  # of texts; a row may have some megabytes, and a page a thousand rows
ROWS_PER_READ = 25  # how far a page may exceed its limit before this is found
LARGE_PAGE_MESSAGE = f"The rows of this page have more than {MAX_PAGE_MB} MB. Send a smaller perPage."


@dataclass(frozen=True, slots=True)
class Paging:
    """The page that a request asks for: `rows[paging.start:paging.stop]`."""

    page: int
    per_page: int

    @property
    def start(self) -> int:
        return self.page * self.per_page

    @property
    def stop(self) -> int:
        return self.start + self.per_page


class PageSize:
    """The size of the rows of a page so far. Raise BadRequest for more than MAX_PAGE_MB."""

    def __init__(self) -> None:
        self.characters = 0

    def add(self, characters: int) -> None:
        self.characters += characters
        if self.characters > MAX_PAGE_MB * 1024 * 1024:
            raise BadRequest("query parameters", [("perPage", LARGE_PAGE_MESSAGE)])


def read_page(rows: QuerySet[LargeRow], paging: Paging, body_of: Callable[[LargeRow], Any]) -> list[Any]:
    """Return the bodies of a page of rows that may be large. They are read in parts, up to the size of a page.

    The database sorts all rows once, by their keys alone.
    """
    bodies: list[Any] = []
    size = PageSize()
    for part in in_parts([*rows.values_list("pk", flat=True)[paging.start : paging.stop]]):
        for row in rows.filter(pk__in=part):
            bodies.append(body_of(row))
            size.add(text_length(bodies[-1]))
    return bodies


def in_parts(keys: Sequence[LargeKey]) -> Iterator[list[LargeKey]]:
    """Return the keys of large rows in parts that are read at once."""
    return in_batches(keys, ROWS_PER_READ)


def text_length(value: object) -> int:
    """Return the number of characters of the texts in a JSON value."""
    length, waiting = 0, [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            length += len(part)
        elif isinstance(part, dict):
            length += sum(map(len, part))
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return length


def page_payload(key: str, rows: Sequence[Any], total: int, page: int, per_page: int) -> JSONObject:
    """Return the response body of a page of rows."""
    return {
        key: rows,
        "total": total,
        "page": page,
        "perPage": per_page,
        "hasMore": (page + 1) * per_page < total,
    }


def with_warnings(page: str, unknown: Sequence[UnknownName]) -> str:
    """Return the response body of a page with the warnings about unknown parameters, if there are any."""
    if not unknown:
        return page
    warnings = json.dumps([name._asdict() for name in unknown], ensure_ascii=False)
    return f'{page[:-1]},"warnings":{warnings}}}'


def cursor_page_json(key: str, rows: Iterable[str], per_page: int, next_cursor: str | None) -> str:
    """Return the response body of a cursor page, for rows that are JSON texts already."""
    # A cursor is base64 for URLs, which needs no escape.
    cursor = f'"{next_cursor}"' if next_cursor else "null"
    has_more = "true" if next_cursor else "false"
    return f'{{"{key}":[{",".join(rows)}],"perPage":{per_page},"hasMore":{has_more},"nextCursor":{cursor}}}'


def page_json(key: str, rows: Iterable[str], total: int, page: int, per_page: int) -> str:
    """Return the response body of a page of rows that are JSON texts already."""
    has_more = "true" if (page + 1) * per_page < total else "false"
    return f'{{"{key}":[{",".join(rows)}],"total":{total},"page":{page},"perPage":{per_page},"hasMore":{has_more}}}'
