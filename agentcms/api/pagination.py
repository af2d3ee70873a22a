"""Pagination by page number and by cursor."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from agentcms.wire.unknown_names import UnknownName


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


def page_payload(key: str, rows: Sequence[Any], total: int, page: int, per_page: int) -> dict[str, Any]:
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
    cursor = f'"{next_cursor}"' if next_cursor else "null"
    has_more = "true" if next_cursor else "false"
    return f'{{"{key}":[{",".join(rows)}],"perPage":{per_page},"hasMore":{has_more},"nextCursor":{cursor}}}'


def page_json(key: str, rows: Iterable[str], total: int, page: int, per_page: int) -> str:
    """Return the response body of a page of rows that are JSON texts already."""
    has_more = "true" if (page + 1) * per_page < total else "false"
    return f'{{"{key}":[{",".join(rows)}],"total":{total},"page":{page},"perPage":{per_page},"hasMore":{has_more}}}'
