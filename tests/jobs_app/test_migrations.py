"""The migration of reports and files of earlier releases."""

from importlib import import_module

import pytest
from django.apps import apps

from jobs_app.models import Job, JobFile, ReportRow
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db

migration = import_module("jobs_app.migrations.0005_move_reports_to_rows")
OLD_RECORDS = [
    {"line": 1, "id": "a", "action": "create"},
    {"line": 3, "action": "refuse", "reason": "No id."},
    {"line": 4, "id": "b", "action": "same", "warnings": [{"field": "tools", "key": "t", "message": "Missing."}]},
]


@pytest.fixture
def old_import():
    result = {"dryRun": False, "create": 1, "update": 0, "same": 1, "refuse": 1, "records": OLD_RECORDS}
    return Job.objects.create(kind="import_agents", state="done", result=result, requested_by=UserFactory())


def test_reports_in_results_become_rows(old_import):
    migration.move_reports(apps, None)
    migration.move_reports(apps, None)  # as after an interruption

    old_import.refresh_from_db()
    assert [(row.number, row.action) for row in ReportRow.objects.all()] == [(1, "create"), (3, "refuse"), (4, "same")]
    assert ReportRow.objects.get(number=4).content == {"id": "b", "warnings": OLD_RECORDS[2]["warnings"]}
    assert "records" not in old_import.result
    assert (old_import.result["listed"], old_import.result["create"]) == (3, 1)
    assert old_import.result["report"] == f"/api/jobs/{old_import.pk}/records"
    assert old_import.report_size > 0


def test_the_reverse_restores_the_result(old_import):
    before = old_import.result
    migration.move_reports(apps, None)

    migration.restore_reports(apps, None)

    old_import.refresh_from_db()
    assert old_import.result == before
    assert not ReportRow.objects.exists()


def test_other_results_stay(db):
    export = Job.objects.create(kind="export_agents", state="done", result={"records": 3})
    failed = Job.objects.create(kind="import_agents", state="failed")

    migration.move_reports(apps, None)

    assert Job.objects.get(pk=export.pk).result == {"records": 3}
    assert Job.objects.get(pk=failed.pk).result is None


def test_existing_files_get_rows(settings, tmp_path):
    settings.DATA_DIR = tmp_path
    export = Job.objects.create(kind="export_agents", state="done")
    upload = Job.objects.create(kind="import_agents", state="queued")
    (tmp_path / "exchange").mkdir()
    names = (f"{export.pk}.jsonl", f"{upload.pk}.upload", f"{upload.pk}.told", "random.part")
    for name in names:
        (tmp_path / "exchange" / name).write_text("123")

    for _ in range(2):
        migration.record_files(apps, None)

    assert {(file.job_id, file.name, file.size) for file in JobFile.objects.all()} == {
        (export.pk, names[0], 3),
        (upload.pk, names[1], 3),
    }


def test_an_installation_without_files_is_migrated(settings, tmp_path):
    settings.DATA_DIR = tmp_path

    migration.record_files(apps, None)

    assert not JobFile.objects.exists()
