"""The kinds of jobs and their titles, for people."""

from __future__ import annotations

_titles: dict[str, str] = {}


def register_title(kind: str, title: str) -> None:
    """Give a kind of job a title, such as "Export of agents"."""
    _titles[kind] = title


def kind_title(kind: str) -> str:
    """Return the title of a kind. A kind of another release may have none: then its name as words."""
    return _titles.get(kind) or kind.replace("_", " ").capitalize()


def kind_titles() -> list[tuple[str, str]]:
    """Return all kinds with their titles, sorted by title."""
    return sorted(_titles.items(), key=lambda item: item[1])
