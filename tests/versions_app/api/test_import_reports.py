"""The report of an import: pages of rows of limited size."""

import json

import pytest
from django.core.files.base import ContentFile

from jobs_app.files import file_storage
from jobs_app.models import Job, ReportRow
from jobs_app.runner import run_claimed
from tests.agent_exchange import import_file, import_records, record, run_job
from versions_app.exchange import report_rows


def records_of(caller, job, query=""):
    return caller.get(f"/api/jobs/{job['id']}/records{query}")


def test_the_report_is_a_page_of_records(api):
    job = run_job(api, import_records(api, [record("a"), {"id": "bad"}, record("c")]))

    first = records_of(api, job, "?perPage=2").body
    refused = records_of(api, job, "?action=refuse").body

    assert [(one["line"], one["id"], one["action"]) for one in first["records"]] == [
        (1, "a", "create"),
        (2, "bad", "refuse"),
    ]
    assert (first["total"], first["page"], first["perPage"], first["hasMore"]) == (3, 0, 2, True)
    assert [one["line"] for one in refused["records"]] == [2]
    assert refused["records"][0]["reason"].startswith("A record must be an object")


def test_an_unknown_action_is_an_error_with_its_field(api):
    job = run_job(api, import_records(api, [record("a")]))

    answer = records_of(api, job, "?action=refused")

    assert (answer.status_code, answer.body["issues"]) == (
        400,
        [{"field": "action", "message": "Give one of all, create, update, same, refuse."}],
    )


def test_the_report_of_another_user_is_not_found(api, stranger):
    job = run_job(api, import_records(api, [record("a")]))

    assert records_of(stranger, job).status_code == 404


def test_the_result_counts_records_and_names_the_report(api):
    job = run_job(api, import_records(api, [record("a"), {"id": "bad"}]))

    assert job["result"] == {
        "dryRun": False,
        "create": 1,
        "update": 0,
        "same": 0,
        "refuse": 1,
        "listed": 2,
        "report": f"/api/jobs/{job['id']}/records",
    }


def test_the_number_of_listed_records_is_limited(api, monkeypatch):
    monkeypatch.setattr(report_rows, "MAX_LISTED_RECORDS", 2)

    result = import_file(api, [record(name) for name in "abcd"])

    assert (result["create"], result["listed"], len(result["records"])) == (4, 2, 2)


def test_the_size_of_a_report_is_limited(api, monkeypatch):
    monkeypatch.setattr(report_rows, "MAX_REPORT_SIZE", 1000)

    result = import_file(api, [{"id": f"bad-{number}"} for number in range(100)])

    assert result["refuse"] == 100
    assert 0 < result["listed"] < 10
    assert Job.objects.get().report_size <= 1000
    assert sum(len(json.dumps(row.content)) for row in ReportRow.objects.all()) == Job.objects.get().report_size


@pytest.mark.parametrize("letter", ["x", "é", "\N{GRINNING FACE}"])
def test_long_texts_of_a_file_are_truncated(api, letter):
    long = letter * 50_000
    lines = [{"id": long, "agent": {}}, record("a", tools=["t" * 250], metadata={}), record("b", **{long: 1})]

    records = import_file(api, lines)["records"]

    assert len(records) == 3
    assert all(len(json.dumps(one)) < 30_000 for one in records)
    assert records[0]["id"] == letter * 199 + "…"


@pytest.mark.parametrize("text", ["\0", "a\0b", "\ud800"])
def test_characters_that_a_database_rejects_are_replaced(api, text):
    started = import_records(api, json.dumps({"id": text, "agent": {}}).encode()).body["id"]

    run_claimed(started)

    assert api.get(f"/api/jobs/{started}").body["state"] == "done"
    assert ReportRow.objects.count() == 1


def test_an_import_continues_with_the_outcomes_of_a_worker_of_the_last_release(api):
    started = import_records(api, [record("a"), record("b")]).body["id"]
    log = b'{"line": 1, "id": "a", "action": "create", "reason": ""}\n'
    file_storage().save(f"{started}.told", ContentFile(log + b'{"line": 2, "not committed'))
    Job.objects.update(cursor={"line": 1, "told": len(log), "counts": {"create": 1}})

    run_claimed(started)

    records = api.get(f"/api/jobs/{started}/records").body["records"]
    assert [(one["line"], one["id"], one["action"]) for one in records] == [(1, "a", "create"), (2, "b", "create")]
