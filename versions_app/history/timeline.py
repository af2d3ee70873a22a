"""Timeline entries of a history: each version with a summary of its changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agents_app.configuration.references import MissingReference, StoredAgents, find_missing_references
from agents_app.models import Agent
from versions_app.compare.change_summary import FieldSummary, summarize_field_names
from versions_app.history.cached_changes import SnapshotId, VersionPair, find_changes, snapshot_id
from versions_app.models import AgentVersion


@dataclass(frozen=True)
class TimelineEntry:
    """A version in the history, with its changes since its base: the version that it is based on.

    If it stands for several saves, its base is that of the earliest.
    """

    version: AgentVersion
    base: int | None
    is_base_deleted: bool
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
    def comparable_base(self) -> int | None:
        """Return the version that this one is based on, or None if it was deleted."""
        # That of a row of several saves is one of them, and no deleted version.
        is_deleted = self.is_base_deleted and self.version.based_on == self.base
        return None if is_deleted else self.version.based_on

    @property
    def is_branch(self) -> bool:
        """Return True if the version is not based on the one numbered before it."""
        return self.version.based_on is not None and self.version.based_on != self.number - 1


def build_timeline(
    agent: Agent, versions: Iterable[AgentVersion], bases: Mapping[int, int | None] | None = None
) -> Sequence[TimelineEntry]:
    """Return the entries of versions, whose snapshots need not be loaded.

    Takes at most three queries: for base versions, for snapshots and for sub-agents. `bases` has the bases of versions
    that stand for several saves, by number.
    """
    versions = [*versions]
    bases = {version.version_number: version.based_on for version in versions} | dict(bases or {})
    pairs = pairs_with_bases(agent, versions, bases)
    changes = find_changes(pairs.values())
    known = stored_sub_agents(agent, versions)
    entries = []
    for version in versions:
        pair = pairs.get(version.version_number)
        differences = changes.get(pair) if pair else None
        entries.append(build_timeline_entry(agent, version, bases[version.version_number], differences, known))
    return entries


def pairs_with_bases(
    agent: Agent, versions: Sequence[AgentVersion], bases: Mapping[int, int | None]
) -> Mapping[int, VersionPair]:
    """Return each version with its base, by number, without the versions whose base was deleted."""
    snapshots = {version.version_number: snapshot_id(version) for version in versions}
    # Most bases are among the versions. One query reads the others.
    if missing := {number for number in bases.values() if number} - set(snapshots):
        rows = agent.versions.filter(version_number__in=missing).order_by()
        columns = rows.values_list("version_number", "pk", "snapshot_hash")
        snapshots |= {number: SnapshotId(pk, text_hash) for number, pk, text_hash in columns}
    return {
        version.version_number: VersionPair(snapshots[base], snapshots[version.version_number])
        for version in versions
        if (base := bases[version.version_number]) is not None and base in snapshots
    }


def build_timeline_entry(
    agent: Agent,
    version: AgentVersion,
    base: int | None,
    differences: Sequence[FieldSummary] | None,
    known: StoredAgents,
) -> TimelineEntry:
    """Return the entry of a version. `differences` is None without a base, and if that was deleted."""
    is_base_deleted = base is not None and differences is None
    changes = summarize_field_names(version.changed_fields) if is_base_deleted else differences or []
    note = "First version" if base is None else f"Same as v{base}"
    return TimelineEntry(
        version,
        base,
        is_base_deleted,
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


def pruned_message(agent: Agent, version_count: int) -> str:
    """Return a sentence about pruned and deleted versions, or an empty string if there are none."""
    count = agent.last_version_number - version_count
    if count <= 0:
        return ""
    noun = "version was" if count == 1 else "versions were"
    return (
        f"{count:,} older {noun} pruned or deleted. Pruning never removes the live version, the previous live "
        "version, the draft and pinned versions."
    )
