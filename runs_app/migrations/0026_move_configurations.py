"""Move the configurations of existing runs into the table that runs share."""

from __future__ import annotations

import hashlib
import json
from typing import Any
from uuid import UUID

from django.db import migrations, transaction

BATCH_SIZE = 1000  # runs in one transaction


def move(apps: Any, schema_editor: Any) -> None:
    AgentRun = apps.get_model("runs_app", "AgentRun")
    RunConfiguration = apps.get_model("runs_app", "RunConfiguration")
    for runs in batches(AgentRun.objects.filter(shared_configuration=None)):
        texts: dict[UUID, str] = {}
        for run in runs:
            if run.stored_configuration:
                text = json.dumps(run.stored_configuration, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
                run.shared_configuration_id = UUID(hashlib.sha256(text.encode()).hexdigest()[:32])
                run.stored_configuration, texts[run.shared_configuration_id] = {}, text
        with transaction.atomic():
            rows = [RunConfiguration(id=key, text=text) for key, text in texts.items()]
            RunConfiguration.objects.bulk_create(rows, ignore_conflicts=True)
            AgentRun.objects.bulk_update(runs, ["shared_configuration", "stored_configuration"], batch_size=100)


def restore(apps: Any, schema_editor: Any) -> None:
    """Give each run a copy of its configuration again."""
    AgentRun = apps.get_model("runs_app", "AgentRun")
    for runs in batches(AgentRun.objects.exclude(shared_configuration=None).select_related("shared_configuration")):
        for run in runs:
            run.stored_configuration = json.loads(run.shared_configuration.text)
            run.shared_configuration = None
        AgentRun.objects.bulk_update(runs, ["shared_configuration", "stored_configuration"], batch_size=100)


def batches(runs: Any) -> Any:
    """Yield lists of runs in the order of their keys, with the columns of the configuration."""
    last = None
    columns = runs.only("stored_configuration", "shared_configuration")
    while page := list((columns.filter(pk__gt=last) if last else columns).order_by("pk")[:BATCH_SIZE]):
        yield page
        last = page[-1].pk


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("runs_app", "0025_shared_configurations"),
    ]

    operations = [migrations.RunPython(move, restore)]
