"""Timeline entries of a history: each version with a summary of its changes."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import JSONField, QuerySet, TextField
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Length

from agents_app.configuration.references import MissingReference, StoredAgents, find_missing_references
from agents_app.models import Agent
from versions_app.compare.summary import FieldSummary, summarize, summarize_field_names
from versions_app.models import AgentVersion


@dataclass(frozen=True)
class TimelineEntry:
    """A version in the history, with its changes since its base: the version that it is based on.

    If it stands for several saves, its base is that of the earliest.
    """

    version: AgentVersion
    base: int | None
    changes: Sequence[FieldSummary]
    note: str  # text if there are no changes
    is_live: bool
    is_head: bool
    is_draft: bool
    missing_references: Sequence[MissingReference]

    @property
    def has_missing_references(self) -> bool:
        return bool(self.missing_references)

    @property
    def number(self) -> int:
        return self.version.version_number

    @property
    def is_branch(self) -> bool:
        """Return True if the version is not based on the one numbered before it."""
        return self.version.based_on is not None and self.version.based_on != self.number - 1


def build_entries(
    agent: Agent, versions: Iterable[AgentVersion], bases: Mapping[int, int | None] | None = None
) -> Sequence[TimelineEntry]:
    """Return the entries of versions, with one query for base versions and one for sub-agents.

    `bases` has the bases of versions that stand for several saves, by number.
    """
    versions = [*versions]
    bases = {version.version_number: version.based_on for version in versions} | dict(bases or {})
    snapshots = {version.version_number: version.snapshot for version in versions}
    if missing := {number for number in bases.values() if number} - set(snapshots):
        rows = agent.versions.filter(version_number__in=missing).order_by()
        for number, text in rows.values_list("version_number", "snapshot_text"):
            snapshots[number] = json.loads(text)
    known = stored_sub_agents(agent, versions)
    return [build_entry(agent, version, bases[version.version_number], snapshots, known) for version in versions]


def build_entry(
    agent: Agent, version: AgentVersion, base: int | None, snapshots: dict[int, Any], known: StoredAgents
) -> TimelineEntry:
    changes: Sequence[FieldSummary] = []
    if base is not None:
        before, fields = snapshots.get(base), version.changed_fields
        changes = summarize_field_names(fields) if before is None else summarize(before, version.snapshot)
    note = "First version" if base is None else f"Same as v{base}"
    return TimelineEntry(
        version,
        base,
        changes,
        "" if changes else note,
        is_live=version.pk == agent.active_version_id,
        is_head=version.pk == agent.head_version_id,
        is_draft=agent.has_draft and version.pk == agent.head_version_id,
        missing_references=find_missing_references(version.references, known),
    )


def stored_sub_agents(agent: Agent, versions: Iterable[AgentVersion]) -> StoredAgents:
    """Return the stored agents among the sub-agents that the versions name."""
    keys = {key for version in versions for key in version.references.get("agents", ())}
    return Agent.objects.stored_among({agent.pk: (agent.owner_id, keys)})[agent.pk]


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
)


def version_summaries(versions: QuerySet[AgentVersion]) -> Sequence[VersionSummary]:
    """Return the summaries of versions, oldest first, without loading their snapshots."""
    return [VersionSummary(*row) for row in versions.order_by("version_number").values_list(*SUMMARY_COLUMNS)]


def instruction_sizes(agent: Agent, numbers: Collection[int]) -> Sequence[tuple[int, int]]:
    """Return number and characters of the instructions of these versions, oldest first."""
    rows = agent.versions.filter(version_number__in=numbers).order_by("version_number")
    size = Length(KT("configuration__instructions"))
    columns = rows.annotate(configuration=Cast("snapshot_text", JSONField())).values_list("version_number", size)
    return [(number, length or 0) for number, length in columns]


def filter_by_changed_field(versions: QuerySet[AgentVersion], field: str) -> QuerySet[AgentVersion]:
    """Return the versions that changed a field, by its wire name."""
    # Compare as text: SQLite has no lookup into a JSON list.
    return versions.annotate(fields_text=Cast("changed_fields", TextField())).filter(
        fields_text__contains=f'"{field}"'
    )


def pruned_message(agent: Agent, version_count: int) -> str:
    """Return a sentence about pruned and deleted versions, or an empty string if there are none."""
    count = agent.last_version_number - version_count
    if count <= 0:
        return ""
    noun = "version was" if count == 1 else "versions were"
    return (
        f"{count} older {noun} pruned or deleted. Pruning never removes the live version, the previous live version, "
        "the draft and pinned versions."
    )
