"""The scorers that agents can use, which each process caches for a second."""

from __future__ import annotations

from collections.abc import Mapping

from agentcms.db.cached_table import CachedTable
from agents_app.registry import Entry, Kind
from evals_app.models import Scorer
from evals_app.scorers.live import LiveScorer


def scorer_entries() -> Mapping[str, Entry]:
    """Return the published scorers by ID."""
    return scorer_table.get().records


def load_entries() -> dict[str, Entry]:
    rows = Scorer.objects.filter(live__isnull=False).select_related("live")
    return {row.pk: entry_of(row) for row in rows}


def entry_of(row: Scorer) -> Entry:
    return Entry(
        Kind.SCORER,
        row.pk,
        row.name,
        str(row.configuration.get("description") or ""),
        target=LiveScorer(row.pk, row.live.version_number if row.live else 0),
        source="staff",
        owner_id=row.owner_id,
        # By it, the table notices that another version went live.
        definition_hash=str(row.live_id),
    )


scorer_table = CachedTable(load_entries, lambda entry: entry.definition_hash)
