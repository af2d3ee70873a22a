"""Columns of item versions that are derived from others: the text for searches, and the hash of a resource."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from agentcms.db.batches import in_batches
from agentcms.ids import parse_uuid
from agentcms.wire.json_types import JSONValue
from evals_app.models import ItemVersion
from runs_app.models import AgentRun
from runs_app.runs_of_resources import digest_of_run

MAX_SEARCH_TEXT = 20_000  # characters of an item that a search looks at
RUNS_PER_READ = 500


def search_text_of(version: ItemVersion) -> str:
    """Return the text of an item that a search looks at."""
    texts = [*texts_in(version.input), *texts_in(version.ground_truth)]
    # Folded here: SQLite ignores the case of ASCII letters only.
    return " ".join(texts)[:MAX_SEARCH_TEXT].casefold()


def mark_resources(versions: Sequence[ItemVersion]) -> None:
    """Set the hashes of the resources of whose runs versions are made. The runs are deleted earlier."""
    by_run: dict[UUID, list[ItemVersion]] = {}
    for version in versions:
        if (run_id := run_of_source(version.source)) is not None:
            by_run.setdefault(run_id, []).append(version)
    runs = AgentRun.objects.without_large_columns().select_related("resource", "thread")
    for ids in in_batches([*by_run], RUNS_PER_READ):
        for run in runs.filter(pk__in=ids):
            for version in by_run[run.pk]:
                version.resource_digest = digest_of_run(run)


def run_of_source(source: JSONValue) -> UUID | None:
    """Return the run that the source of an item names, or None."""
    is_trace = isinstance(source, dict) and source.get("type") == "trace"
    return parse_uuid(str(source.get("referenceId"))) if is_trace else None


def texts_in(value: object) -> list[str]:
    """Return the texts and numbers in a JSON value."""
    if isinstance(value, dict):
        return [text for item in value.values() for text in texts_in(item)]
    if isinstance(value, list):
        return [text for item in value for text in texts_in(item)]
    return [] if value is None else [str(value)]
