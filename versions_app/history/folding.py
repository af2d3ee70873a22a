"""Consecutive saves of one person, which a history shows as one row."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta
from uuid import UUID

from versions_app.history.version_summaries import VersionSummary

FOLD_PERIOD = timedelta(minutes=10)

Saves = Sequence[VersionSummary]  # of one row, newest first


def fold_saves(versions: Iterable[VersionSummary], pointers: Collection[UUID | None]) -> list[Saves]:
    """Group versions, given newest first, into rows. Only the newest version of a row is visible at first.

    `pointers` are the IDs of the live and the head version, which are always visible.
    """
    rows: list[list[VersionSummary]] = []
    for version in versions:
        if rows and version.id not in pointers and continues_row(rows[-1], version):
            rows[-1].append(version)
        else:
            rows.append([version])
    return [*rows]


def continues_row(row: Saves, older: VersionSummary) -> bool:
    """Return whether a version is an earlier save in a row. What a person named, described or pinned is not."""
    newest, next_newer = row[0], row[-1]
    return (
        older.author_name != ""
        and (older.author_name, older.source) == (newest.author_name, newest.source)
        and not (older.name or older.message or older.pinned)
        and older.based_on is not None
        and next_newer.based_on == older.number
        and newest.created_at - older.created_at <= FOLD_PERIOD
    )
