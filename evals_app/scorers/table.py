"""The scorers that agents can use, which each process caches for a second."""

from __future__ import annotations

from collections.abc import Mapping

from cachetools import TTLCache

from agentcms.cache import SizeLimitedCache
from agents_app.registry import Entry, Kind
from evals_app.models import Scorer
from evals_app.scorers.live import LiveScorer

CACHE_SECONDS = 1.0

_tables: SizeLimitedCache[str, Mapping[str, Entry]] = SizeLimitedCache(TTLCache(1, CACHE_SECONDS))


def staff_entries() -> Mapping[str, Entry]:
    """Return the published scorers by ID."""
    return _tables.get_or_create("table", load_entries)


def load_entries() -> dict[str, Entry]:
    rows = Scorer.objects.filter(live__isnull=False).select_related("live")
    return {row.pk: entry_of(row) for row in rows}


def entry_of(row: Scorer) -> Entry:
    return Entry(
        Kind.SCORER,
        row.pk,
        row.name,
        str(row.shown.get("description") or ""),
        target=LiveScorer(row.pk, row.live.version_number if row.live else 0),
        source="staff",
        owner_id=row.owner_id,
        definition_hash=str(row.live_id),
    )


def revision() -> str:
    """Return a text that changes with the published scorers."""
    return " ".join(entry.definition_hash for entry in staff_entries().values())


def invalidate() -> None:
    """Remove the table from the cache of this process."""
    _tables.clear()
