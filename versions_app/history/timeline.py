"""A history as it is read: each version with what changed in it, and what is no longer kept."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import JSONField, QuerySet, TextField
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Length

from agents_app.configuration.references import MissingReference, find_missing_references
from agents_app.models import Agent
from versions_app.compare.summary import FieldSummary, summarize, summarize_field_names
from versions_app.models import AgentVersion


@dataclass(frozen=True)
class TimelineEntry:
    """One version in a history, with what it changed of the version it is based on."""

    version: AgentVersion
    phrases: Sequence[FieldSummary]
    note: str  # what stands in place of the phrases where there are none
    is_live: bool
    is_head: bool
    is_draft: bool
    broken: Sequence[MissingReference]

    @property
    def is_broken(self) -> bool:
        return bool(self.broken)

    @property
    def number(self) -> int:
        return self.version.version_number

    @property
    def branches(self) -> bool:
        """Whether it was not made from the version numbered before it."""
        return self.version.based_on is not None and self.version.based_on != self.number - 1


def build_entries(agent: Agent, versions: Iterable[AgentVersion]) -> Sequence[TimelineEntry]:
    """The versions with their summaries: one query for what they are based on, one where sub-agents are named."""
    shown = [*versions]
    pictures = {version.version_number: version.snapshot for version in shown}
    wanted = {version.based_on for version in shown if version.based_on} - set(pictures)
    if wanted:
        bases = agent.versions.filter(version_number__in=wanted).order_by()
        for number, text in bases.values_list("version_number", "snapshot_text"):
            pictures[number] = json.loads(text)
    known = usable_sub_agents(agent, shown)
    return [build_entry(agent, version, pictures, known) for version in shown]


def build_entry(agent: Agent, version: AgentVersion, pictures: dict[int, Any], known: Iterable[str]) -> TimelineEntry:
    phrases: Sequence[FieldSummary] = []
    note = "First version"
    if version.based_on is not None:
        base = pictures.get(version.based_on)
        phrases = (
            summarize(base, version.snapshot) if base is not None else summarize_field_names(version.changed_fields)
        )
        note = f"Same as v{version.based_on}"
    return TimelineEntry(
        version,
        phrases,
        "" if phrases else note,
        is_live=version.pk == agent.active_version_id,
        is_head=version.pk == agent.head_version_id,
        is_draft=agent.has_draft and version.pk == agent.head_version_id,
        broken=find_missing_references(version.references, known),
    )


def usable_sub_agents(agent: Agent, versions: Iterable[AgentVersion]) -> set[str]:
    """The stored agents among those that the versions name which the agent may use."""
    wanted = {key for version in versions for key in version.references.get("agents", ())}
    if not wanted:
        return set()
    usable = Agent.objects.filter(pk__in=wanted).usable_by(agent.owner_id)
    return set(usable.values_list("pk", flat=True))


@dataclass(frozen=True)
class VersionSummary:
    """A version in so far as the charts and the filters need it."""

    number: int
    name: str
    created_at: datetime
    author_name: str
    size: int  # characters of the instructions


def version_summaries(agent: Agent) -> Sequence[VersionSummary]:
    """Every version that is kept, oldest first, in one query that reads no picture into memory."""
    size = Length(KT("picture__instructions"))
    rows = agent.versions.annotate(picture=Cast("snapshot_text", JSONField()))
    columns = rows.order_by("version_number").values_list("version_number", "name", "created_at", "author_name", size)
    return [VersionSummary(number, name, made, author, length or 0) for number, name, made, author, length in columns]


def filter_by_changed_field(versions: QuerySet[AgentVersion], field: str) -> QuerySet[AgentVersion]:
    """The versions that changed a field, by its wire name. As text: SQLite cannot look inside a JSON list."""
    return versions.annotate(fields_text=Cast("changed_fields", TextField())).filter(
        fields_text__contains=f'"{field}"'
    )


def pruned_message(agent: Agent, kept: int) -> str:
    """A sentence on the versions that are no longer kept; empty where all of them are."""
    count = agent.last_version_number - kept
    if count <= 0:
        return ""
    noun = "version was" if count == 1 else "versions were"
    return (
        f"{count} older {noun} pruned or deleted. What is live, what was live before, the draft and pinned versions "
        "always stay."
    )
