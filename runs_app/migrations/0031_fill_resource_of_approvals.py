"""Store the hash of the resource with calls that waited for people, while their runs are there."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from django.db import migrations, transaction

BATCH_SIZE = 1000  # calls of one transaction


def fill(apps: Any, schema_editor: Any) -> None:
    PendingCall = apps.get_model("runs_app", "PendingCall")
    unmarked = PendingCall.objects.filter(resource_digest="", run__resource__isnull=False).order_by("pk")
    columns = unmarked.values_list("pk", "run__resource__realm", "run__resource__key")
    rows = list(columns[:BATCH_SIZE])
    while rows:
        calls = [PendingCall(pk=pk, resource_digest=resource_digest(realm, key)) for pk, realm, key in rows]
        with transaction.atomic():
            PendingCall.objects.bulk_update(calls, ["resource_digest"])
        rows = list(columns.filter(pk__gt=rows[-1][0])[:BATCH_SIZE])


def resource_digest(realm: str, key: str) -> str:
    """Return the hash that `memory_app.realms` computes today."""
    return hashlib.sha256(json.dumps([realm, key], ensure_ascii=False).encode()).hexdigest()


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("memory_app", "0002_resources"),
        ("runs_app", "0030_resource_of_approvals"),
    ]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
