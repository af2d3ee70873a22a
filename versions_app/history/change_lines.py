"""Summaries of versions of several agents, one line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from django.db.models import Q

from versions_app.compare.change_summary import summarize_field_names, summary_line
from versions_app.history.cached_changes import SnapshotId, VersionPair, find_changes, snapshot_id
from versions_app.models import AgentVersion

AgentAndNumber = tuple[str, int]  # agent and number


def add_summaries(versions: Sequence[AgentVersion]) -> None:
    """Set `summary` of each version to its changes since the version that it is based on.

    Takes at most two queries: one for the bases that are not among the versions, one for snapshots.
    """
    snapshots = {(version.agent_id, version.version_number): snapshot_id(version) for version in versions}
    snapshots |= load_base_versions(versions, snapshots.keys())
    pairs = {version.pk: pair for version in versions if (pair := pair_with_base(version, snapshots))}
    changes = find_changes(pairs.values())
    for version in versions:
        pair = pairs.get(version.pk)
        differences = changes.get(pair) if pair else None
        if differences is None:
            differences = summarize_field_names(version.changed_fields)
        version.summary = summary_line(differences)  # type: ignore[attr-defined]


def pair_with_base(version: AgentVersion, snapshots: Mapping[AgentAndNumber, SnapshotId]) -> VersionPair | None:
    """Return a version with the one that it is based on, or None if that was deleted."""
    base = snapshots.get((version.agent_id, version.based_on or 0))
    return VersionPair(base, snapshot_id(version)) if base else None


def load_base_versions(
    versions: Sequence[AgentVersion], loaded: Set[AgentAndNumber]
) -> dict[AgentAndNumber, SnapshotId]:
    """Return the base versions that still exist, without the loaded ones."""
    keys = {(version.agent_id, version.based_on) for version in versions if version.based_on is not None} - loaded
    if not keys:
        return {}
    condition = Q()
    for agent_id, number in keys:
        condition |= Q(agent=agent_id, version_number=number)
    rows = AgentVersion.objects.filter(condition).order_by()
    columns = rows.values_list("agent_id", "version_number", "pk", "snapshot_hash")
    return {(agent_id, number): SnapshotId(pk, text_hash) for agent_id, number, pk, text_hash in columns}
