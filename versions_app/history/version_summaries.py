"""The columns of versions that charts, filters and folding need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast

from versions_app.models import AgentVersion


@dataclass(frozen=True)
class VersionSummary:
    """The columns of a version that charts, filters and folding need."""

    id: UUID
    number: int
    based_on: int | None
    name: str
    message: str
    pinned: bool
    created_at: datetime
    author_name: str
    source: str
    snapshot_hash: str = ""


SUMMARY_COLUMNS = (
    "id",
    "version_number",
    "based_on",
    "name",
    "change_message",
    "pinned",
    "created_at",
    "author_name",
    "source",
    "snapshot_hash",
)


def version_summaries(versions: QuerySet[AgentVersion]) -> Sequence[VersionSummary]:
    """Return the summaries of versions, oldest first, without loading their snapshots."""
    return [VersionSummary(*row) for row in versions.order_by("version_number").values_list(*SUMMARY_COLUMNS)]


def filter_by_changed_field(versions: QuerySet[AgentVersion], field: str) -> QuerySet[AgentVersion]:
    """Return the versions that changed a field, by its wire name."""
    # Compare as text: SQLite has no lookup into a JSON list.
    return versions.annotate(fields_text=Cast("changed_fields", TextField())).filter(
        fields_text__contains=f'"{field}"'
    )
