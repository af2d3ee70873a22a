"""Store the hash of the resource with calls whose run names none: that of its thread, or the user's own."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from django.db import migrations, transaction

BATCH_SIZE = 1000  # calls of one transaction
PLACE = ("run__thread__realm", "run__thread__resource_key", "run__requested_by", "run__experiment_id")


def fill(apps: Any, schema_editor: Any) -> None:
    PendingCall = apps.get_model("runs_app", "PendingCall")
    unmarked = PendingCall.objects.filter(resource_digest="", run__created_at__isnull=False).order_by("pk")
    columns = unmarked.values_list("pk", *PLACE)
    rows = list(columns[:BATCH_SIZE])
    while rows:
        calls = [PendingCall(pk=pk, resource_digest=digest_of(*place)) for pk, *place in rows]
        with transaction.atomic():
            PendingCall.objects.bulk_update(calls, ["resource_digest"])
        rows = list(columns.filter(pk__gt=rows[-1][0])[:BATCH_SIZE])


def digest_of(realm: str | None, key: str | None, user_id: int | None, experiment_id: Any) -> str:
    """Return the hash that `runs_app.resources` computes today."""
    if not realm:
        if user_id is None or experiment_id is not None:
            return ""
        realm = key = f"u{user_id}"
    return hashlib.sha256(json.dumps([realm, key], ensure_ascii=False).encode()).hexdigest()


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("memory_app", "0002_resources"),
        ("runs_app", "0032_index_resource_of_approvals"),
    ]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
