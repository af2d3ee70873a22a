"""Move expected trajectories that were stored before they were checked, and that are invalid, into the metadata.

They made an item that could be exported, but neither imported nor changed, and no scorer could compare them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import migrations, transaction

BATCH_SIZE = 500  # rows of one transaction
KEPT_AS = "invalidExpectedTrajectory"  # in the metadata


def move(apps: Any, schema_editor: Any) -> None:
    ItemVersion = apps.get_model("evals_app", "ItemVersion")
    rows = ItemVersion.objects.filter(expected_trajectory__isnull=False).order_by("pk")
    batch = list(rows[:BATCH_SIZE])
    while batch:
        invalid = [row for row in batch if not is_valid(row.expected_trajectory)]
        for row in invalid:
            row.metadata = {**(row.metadata or {}), KEPT_AS: row.expected_trajectory}
            row.expected_trajectory = None
        with transaction.atomic():
            ItemVersion.objects.bulk_update(invalid, ["metadata", "expected_trajectory"])
        batch = list(rows.filter(pk__gt=batch[-1].pk)[:BATCH_SIZE])


def is_count(value: Any, most: float = float("inf")) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def is_amount(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def is_names(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= 200 and all(isinstance(name, str) for name in value)


def is_steps(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(step, str | dict) for step in value)


def is_flag(value: Any) -> bool:
    return isinstance(value, bool)


CHECKS: dict[str, Callable[[Any], bool]] = {
    "steps": is_steps,
    "ordering": lambda value: value in ("strict", "relaxed", "unordered"),
    "maxSteps": lambda value: is_count(value, 100_000),
    "maxTotalTokens": is_count,
    "maxTotalDurationMs": is_amount,
    "maxRetriesPerTool": lambda value: is_count(value, 100_000),
    "noRedundantCalls": is_flag,
    "allowRepeatedSteps": is_flag,
    "blacklistedTools": is_names,
    "blacklistedSequences": lambda value: (
        isinstance(value, list) and len(value) <= 200 and all(is_names(names) for names in value)
    ),
}


def is_valid(value: Any) -> bool:
    """Return whether the rules of this version accept an expected trajectory."""
    if not isinstance(value, dict):
        return False
    return all(value.get(name) is None or check(value[name]) for name, check in CHECKS.items())


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("evals_app", "0012_jobs_of_comparisons")]

    operations = [migrations.RunPython(move, migrations.RunPython.noop)]
