"""Summaries of versions of several agents, one line each."""

from __future__ import annotations

import json
from collections.abc import Sequence, Set
from typing import Any

from django.db.models import Q

from versions_app.compare.summary import summarize, summarize_field_names, summary_line
from versions_app.models import AgentVersion


def add_summaries(versions: Sequence[AgentVersion]) -> None:
    """Set `summary` of each version to its changes since the version that it is based on, with one query.

    Most versions are based on the one before in the same list, whose snapshot is neither loaded nor parsed again.
    """
    snapshots = {(version.agent_id, version.version_number): version.snapshot for version in versions}
    snapshots |= load_base_snapshots(versions, snapshots.keys())
    for version in versions:
        base = snapshots.get((version.agent_id, version.based_on or 0))
        fields = version.changed_fields
        changes = summarize_field_names(fields) if base is None else summarize(base, version.snapshot)
        version.summary = summary_line(changes)  # type: ignore[attr-defined]


def load_base_snapshots(versions: Sequence[AgentVersion], loaded: Set[tuple[str, int]]) -> dict[tuple[str, int], Any]:
    """Return the snapshots of the base versions that still exist, by agent and number, without the loaded ones."""
    keys = {(version.agent_id, version.based_on) for version in versions if version.based_on is not None} - loaded
    if not keys:
        return {}
    condition = Q()
    for agent_id, number in keys:
        condition |= Q(agent=agent_id, version_number=number)
    rows = AgentVersion.objects.filter(condition).order_by()
    columns = rows.values_list("agent_id", "version_number", "snapshot_text")
    return {(agent_id, number): json.loads(text) for agent_id, number, text in columns}
