"""Pages of rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Paging:
    """Which rows a caller asked for: `rows[paging.start:paging.stop]`."""

    page: int
    per_page: int

    @property
    def start(self) -> int:
        return self.page * self.per_page

    @property
    def stop(self) -> int:
        return self.start + self.per_page


def page_payload(key: str, rows: Sequence[Any], total: int, page: int, per_page: int) -> dict[str, Any]:
    """The answer of every list."""
    return {
        key: rows,
        "total": total,
        "page": page,
        "perPage": per_page,
        "hasMore": (page + 1) * per_page < total,
    }


def cursor_page_json(key: str, rows: Iterable[str], per_page: int, following: str | None) -> str:
    """The answer of a list that is walked by cursor."""
    tail = f'"nextCursor":"{following}"' if following else '"nextCursor":null'
    return f'{{"{key}":[{",".join(rows)}],"perPage":{per_page},"hasMore":{"true" if following else "false"},{tail}}}'


def page_json(key: str, rows: Iterable[str], total: int, page: int, per_page: int) -> str:
    """`page_body` for rows that are JSON texts already."""
    more = "true" if (page + 1) * per_page < total else "false"
    return f'{{"{key}":[{",".join(rows)}],"total":{total},"page":{page},"perPage":{per_page},"hasMore":{more}}}'
