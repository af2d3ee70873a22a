"""Store the owner whose end users asked with the runs of their conversations and resources, and with their calls."""

from __future__ import annotations

from typing import Any

from django.db import migrations, transaction

BATCH_SIZE = 1000  # runs of one transaction


def fill(apps: Any, schema_editor: Any) -> None:
    for name in ("AgentRun", "PendingCall"):
        path = "run__" if name == "PendingCall" else ""
        for column in ("thread", "resource"):
            fill_rows(apps.get_model("runs_app", name), f"{path}{column}__realm")


def fill_rows(model: Any, realm: str) -> None:
    """Set the owner of rows by the realm in another column."""
    rows = model.objects.filter(**{"realm_owner": None, f"{realm}__startswith": "o"}).order_by("pk")
    columns = rows.values_list("pk", realm)
    batch = [*columns[:BATCH_SIZE]]
    while batch:
        changed = [model(pk=pk, realm_owner=value[1:]) for pk, value in batch]
        with transaction.atomic():
            model.objects.bulk_update(changed, ["realm_owner"])
        batch = [*columns.filter(pk__gt=batch[-1][0])[:BATCH_SIZE]]


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("memory_app", "0004_unique_keys"),
        ("runs_app", "0035_realm_owner_of_runs"),
    ]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
