"""Moves the records in the results of imports to rows, and records the files of exports and imports.

Repeatable: a job whose result has no records, and a file with a row, are left as they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import migrations, transaction

BATCH = 1000
MAX_ID_LENGTH = 200
MAX_TEXT_LENGTH = 2000
FINISHED = ("done", "failed")
SUFFIXES = {"export_agents": ".jsonl", "import_agents": ".upload"}


def move_reports(apps: Any, schema_editor: Any) -> None:
    """Move the reports, one job in each transaction."""
    Job, ReportRow = apps.get_model("jobs_app", "Job"), apps.get_model("jobs_app", "ReportRow")
    imports = Job.objects.filter(kind="import_agents", state__in=FINISHED, result__isnull=False)
    for job_id in imports.order_by("pk").values_list("pk", flat=True):
        with transaction.atomic():
            job = Job.objects.select_for_update().get(pk=job_id)
            if isinstance(job.result, dict) and isinstance(job.result.get("records"), list):
                move_report(job, ReportRow)


def move_report(job: Any, ReportRow: Any) -> None:
    records = job.result.pop("records")
    rows = [
        ReportRow(job=job, number=record["line"], action=record["action"], content=content(record))
        for record in records
    ]
    ReportRow.objects.bulk_create(rows, BATCH, ignore_conflicts=True)
    job.result |= {"listed": len(rows), "report": f"/api/jobs/{job.pk}/records"}
    job.report_size = sum(len(json.dumps(row.content)) for row in rows)
    job.save(update_fields=["result", "report_size"])


def content(record: dict[str, Any]) -> dict[str, Any]:
    values = {name: record[name] for name in ("id", "reason", "warnings") if name in record}
    limits = {"id": MAX_ID_LENGTH, "reason": MAX_TEXT_LENGTH}
    return {name: value[: limits[name]] if name in limits else value for name, value in values.items()}


def restore_reports(apps: Any, schema_editor: Any) -> None:
    """Move the rows back to the results."""
    Job, ReportRow = apps.get_model("jobs_app", "Job"), apps.get_model("jobs_app", "ReportRow")
    for job in Job.objects.filter(kind="import_agents", state__in=FINISHED, result__isnull=False).iterator(10):
        rows = ReportRow.objects.filter(job=job).order_by("number")
        records = [{"line": row.number, "action": row.action, **row.content} for row in rows.iterator()]
        result = {name: value for name, value in job.result.items() if name not in ("listed", "report")}
        Job.objects.filter(pk=job.pk).update(result={**result, "records": records})
    ReportRow.objects.all().delete()


def record_files(apps: Any, schema_editor: Any) -> None:
    """Create a row for each file of an existing job."""
    Job, JobFile = apps.get_model("jobs_app", "Job"), apps.get_model("jobs_app", "JobFile")
    for path, job_id in files_of_jobs():
        job = Job.objects.filter(pk=job_id).first()
        if job is not None and SUFFIXES.get(job.kind) == path.suffix:
            JobFile.objects.get_or_create(job=job, defaults={"name": path.name, "size": path.stat().st_size})


def files_of_jobs() -> Iterator[tuple[Path, UUID]]:
    """Yield the local files that are named after a job, with its id."""
    folder = Path(settings.DATA_DIR) / "exchange"
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        try:
            yield path, UUID(path.stem)
        except ValueError:
            continue


def delete_file_rows(apps: Any, schema_editor: Any) -> None:
    apps.get_model("jobs_app", "JobFile").objects.all().delete()


class Migration(migrations.Migration):
    """Data only."""

    atomic = False  # each report in a transaction of its own

    dependencies = [("jobs_app", "0004_files_and_report_rows")]

    operations = [
        migrations.RunPython(move_reports, restore_reports),
        migrations.RunPython(record_files, delete_file_rows),
    ]
