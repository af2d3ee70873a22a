"""Store the hash of the resource with items and results whose runs are there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.db import migrations, transaction

BATCH_SIZE = 500  # rows of one transaction
RESOURCE = ("resource__realm", "resource__key")
THREAD = ("thread__realm", "thread__resource_key")


def fill(apps: Any, schema_editor: Any) -> None:
    ItemVersion, Result = apps.get_model("evals_app", "ItemVersion"), apps.get_model("evals_app", "ExperimentResult")
    runs = apps.get_model("runs_app", "AgentRun").objects.order_by()
    mark(ItemVersion.objects.filter(source__type="trace"), "source", runs)
    mark(Result.objects.filter(run_key__isnull=False), "run_key", runs)


def mark(rows: Any, column: str, runs: Any) -> None:
    """Set the hashes of rows whose column names a run."""
    unmarked = rows.filter(resource_digest="").order_by("pk")
    batch = list(unmarked.values_list("pk", column)[:BATCH_SIZE])
    while batch:
        ids = {pk: run_id for pk, value in batch if (run_id := read_id(value)) is not None}
        digests = dict(digests_of(runs.filter(pk__in={*ids.values()})))
        marked = [
            rows.model(pk=pk, resource_digest=digests[run_id]) for pk, run_id in ids.items() if digests.get(run_id)
        ]
        with transaction.atomic():
            rows.model.objects.bulk_update(marked, ["resource_digest"])
        batch = list(unmarked.filter(pk__gt=batch[-1][0]).values_list("pk", column)[:BATCH_SIZE])


def read_id(value: Any) -> UUID | None:
    """Return the ID of a run: the value, or the reference of a source."""
    if isinstance(value, UUID):
        return value
    try:
        return UUID(str(value["referenceId"]))
    except (KeyError, TypeError, ValueError):
        return None


def digests_of(runs: Any) -> Iterable[tuple[UUID, str]]:
    """Yield the IDs of runs with the hashes that `runs_app.resources` computes today."""
    for run_id, user_id, experiment_id, *places in runs.values_list(
        "pk", "requested_by", "experiment_id", *RESOURCE, *THREAD
    ):
        own = [None, None] if user_id is None or experiment_id is not None else [f"u{user_id}"] * 2
        place = next((pair for pair in (places[:2], places[2:], own) if pair[0]), None)
        if place is not None:
            yield run_id, hashlib.sha256(json.dumps(place, ensure_ascii=False).encode()).hexdigest()


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("evals_app", "0010_resources_of_copies"),
        ("memory_app", "0002_resources"),
        ("runs_app", "0031_fill_resource_of_approvals"),
    ]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
