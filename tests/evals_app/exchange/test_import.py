"""Imports of items: every row is checked first, and all are stored or none."""

import errno
import json
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.files.uploadhandler import TemporaryFileUploadHandler

from evals_app.datasets.changes import add_items
from evals_app.datasets.purging import purge_item
from evals_app.exchange import import_job
from evals_app.models import Dataset, DatasetVersion, ItemVersion
from jobs_app.models import Job, JobFile
from jobs_app.runner import run_claimed
from tests.agent_exchange import run_job
from tests.api_client import Caller
from tests.evals_app.exchange.files import import_items, send_items
from tests.evals_app.experiment_runs import make_dataset
from tests.factories import api_key, member

pytestmark = pytest.mark.django_db
MANY_COLUMNS = f"input,{','.join(f'metadata.k{number}' for number in range(20_000))}\nOne\n"


@pytest.fixture
def person():
    return member("editor", "support")


@pytest.fixture
def editor(person):
    return Caller(api_key(person))


@pytest.fixture
def support():
    return make_dataset(owner_id="support")


def current():
    return list(ItemVersion.objects.current().select_related("item").order_by("item_id"))


def test_a_file_that_cannot_be_stored_is_refused_and_leaves_nothing(editor, support, monkeypatch):
    files = []

    def fill_disk(handler, raw_data, start):
        files.append(handler.file)
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(TemporaryFileUploadHandler, "receive_data_chunk", fill_disk)
    answer = editor.client.post("/api/datasets/support/import", {"file": SimpleUploadedFile("a.csv", b"input\nOne\n")})

    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert not Path(files[0].temporary_file_path()).exists()


def test_columns_are_mapped_to_fields_and_keys(editor, support, person):
    content = "Question;Expected;Topic;Notes;id\nWhen?;[9, 10];hours;x;q1\n  Where? ;Here;;y;q2\n"
    columns = {
        "Question": "input.question",
        "Expected": "groundTruth",
        "Topic": "metadata.topic",
        "Notes": None,
        "id": "externalId",
    }

    result = import_items(editor, "support", content, "csv", columns=columns, name="questions.csv")

    first, second = current()
    assert (result["rows"], result["added"], result["version"]) == (2, 2, 1)
    assert (first.input, first.ground_truth, first.metadata) == ({"question": "When?"}, [9, 10], {"topic": "hours"})
    assert (second.input, second.metadata, second.item.external_id) == ({"question": "  Where? "}, None, "q2")
    assert first.source == {"type": "csv", "referenceId": "questions.csv"}
    version = DatasetVersion.objects.get()
    assert (version.author, version.source, version.added) == (person, "import", 2)
    assert not JobFile.objects.exists()


@pytest.mark.parametrize("options", [{}, {"columns": {"input": "input", "groundTruth": "groundTruth", "": None}}])
def test_blank_columns_at_the_end_are_left_out_unless_they_have_cells(editor, support, options):
    result = import_items(editor, "support", "input,groundTruth,,\nOne,Two,,\nThree,Four\n", "csv", **options)
    refused = import_items(editor, "support", "input,,\nFive,,Six\n", "csv")

    assert [(row.input, row.ground_truth) for row in current()] == [("One", "Two"), ("Three", "Four")]
    assert (result["added"], refused["faults"][0][0]) == (2, 2)
    assert "more cells than the first line has columns" in refused["faults"][0][1]


def test_commas_in_the_names_of_columns_do_not_separate_them(editor, support):
    content = '"Question, as asked, in one line";answer\n"When?";9\n'
    columns = {"Question, as asked, in one line": "input", "answer": "groundTruth"}

    result = import_items(editor, "support", content, "csv", columns=columns)

    (row,) = current()
    assert (result["added"], row.input, row.ground_truth) == (1, "When?", "9")


def test_one_faulty_row_stores_nothing_and_each_fault_names_its_line(editor, support, settings):
    settings.RUN_MAX_INPUT = 1024
    Dataset.objects.update(ground_truth_schema={"type": "string"})
    long_text = "x" * 2000
    content = (
        'input,groundTruth,externalId,toolMocks\nFine,Yes,q1,\n"Two\nlines",Yes,,\n,Yes,,\n{"a": ,Yes,,\n'
        f"Again,Yes,q1,\n{long_text},Yes,,\nMock,Yes,,[{{}}]\nSchema,{{}},,\nMore,Yes,,,more\n"
    )

    result = import_items(editor, "support", content, "csv")

    reasons = dict(result["faults"])
    assert (result["rows"], result["refused"], result["stored"]) == (9, 7, False)
    assert reasons[5] == "input: The input is blank."
    assert "The JSON of the cell cannot be read at line 1, column 7" in reasons[6]
    assert reasons[7] == "externalId: Line 2 has the same external ID."
    assert reasons[8] == "input: An item must not exceed 1 KB."
    assert "toolMocks[0].toolName" in reasons[9]
    assert reasons[10] == "groundTruth: {} is not of type 'string'."
    assert "more cells" in reasons[11]
    assert not ItemVersion.objects.exists()
    assert Dataset.objects.get().version == 0


@pytest.mark.parametrize(
    ("content", "file_format", "fault"),
    [
        ("", "csv", None),
        ("\n", "jsonl", (0, "The file has no items.")),
        ("input\n", "csv", (0, "The file has no items.")),
        ("question\nOne\n", "csv", (1, "columns: The column “question” is not mapped to a field.")),
        ("input,input\nOne,Two\n", "csv", (1, "columns: The column “input” occurs twice. Rename one.")),
        ("groundTruth\nOne\n", "csv", (1, "columns: No column is the input. Map one to input.")),
        ("input,input.a\nOne,Two\n", "csv", (1, "columns: More than one column is mapped to input.")),
        (MANY_COLUMNS, "csv", (1, "columns: The file has more than 200 columns. Delete those that you do not need.")),
        ('input\nOne\n"Two\n', "csv", (3, "The row cannot be read: unexpected end of data.")),
        ("i\0n\0,\0\nOne,Two\n", "csv", (1, "must not contain a NUL character. Save the file as UTF-8.")),
        ("input\rOne\rTwo\r", "csv", (1, "Save the file with line ends of Unix or Windows.")),
        (b"input\nOne\n\xff\n", "csv", (3, "This is not UTF-8.")),
        ('{"input": 1}\n[]\n', "jsonl", (2, "This is not a JSON object.")),
        ('{"input": 1}\n{"input"\n', "jsonl", (2, "The JSON cannot be read at column 9")),
        ('{"input": 1, "input": 2}\n', "jsonl", (1, "input: ")),
        ('{"input": 1, "ground_truth": 2}\n', "jsonl", (1, "ground_truth: This name is unknown. Did you mean ground")),
        ('{"groundTruth": 1}\n', "jsonl", (1, "input: ")),
        ('{"input": "a\\u0000"}\n', "jsonl", (1, "input: Text must not contain a NUL character.")),
        ('{"items": []}', "json", (1, "The file must be a JSON array of items")),
        ('[\n{"input": 1},\n{"input" 2}\n]', "json", (3, "The JSON cannot be read: Expecting ':' delimiter.")),
        ('[{"input": 1}\n{"input": 2}]', "json", (2, "A comma or the end of the list is missing.")),
        ('[{"input": 1}]\nmore', "json", (2, "There is something after the end of the list.")),
        ('[{"input": 1}', "json", (1, "A comma or the end of the list is missing.")),
        ("[" * 3000 + "]" * 3000, "json", (1, "JSON must not be nested deeper")),
        ('[{"input": %s}]' % ("9" * 5000), "json", (1, "input: A whole number must be between")),
    ],
)
def test_a_file_that_cannot_be_read_names_the_line(editor, support, content, file_format, fault):
    if fault is None:
        answer = send_items(editor, "support", content, file_format)
        assert (answer.status_code, answer.body["code"]) == (400, "invalid_body")
        return

    result = import_items(editor, "support", content, file_format)

    lines = [line for line, _ in result["faults"]]
    assert lines == [fault[0]], result["faults"]
    assert fault[1] in result["faults"][0][1]
    assert not ItemVersion.objects.exists()


def test_known_external_ids_replace_items_as_one_version(editor, support):
    add_items(support, [{"input": "One", "external_id": "q1"}, {"input": "Two", "external_id": "q2"}])
    rows = [{"input": "Uno", "externalId": "q1"}, {"input": "Two", "externalId": "q2"}, {"input": "Three"}]
    content = json.dumps([{**row, "source": None} for row in rows])

    result = import_items(editor, "support", content, "json")
    again = import_items(editor, "support", json.dumps([{**rows[0], "source": None}]), "json")

    assert (result["added"], result["changed"], result["version"]) == (1, 1, 2)
    assert [row.input for row in current()] == ["Uno", "Two", "Three"]
    assert (again["stored"], again["version"]) == (True, None)


def test_a_row_that_makes_a_known_item_too_large_names_its_line(editor, support, settings):
    settings.RUN_MAX_INPUT = 1024
    add_items(support, [{"input": "One", "ground_truth": "y" * 600, "external_id": "q1"}])
    rows = [{"input": "Two"}, {"input": "x" * 600, "externalId": "q1"}]

    result = import_items(editor, "support", "\n".join(map(json.dumps, rows)), "jsonl")

    assert result["faults"] == [(2, "input: An item must not exceed 1 KB.")]
    assert [row.input for row in current()] == ["One"]


def test_purged_items_and_too_many_items_are_refused(editor, support, person, monkeypatch):
    add_items(support, [{"input": "One", "external_id": "q1"}, {"input": "Two"}])
    purge_item(support, support.items.get(external_id="q1"), person)
    purged = import_items(editor, "support", '{"input": 1, "externalId": "q1"}\n', "jsonl")
    monkeypatch.setattr("evals_app.datasets.changes.MAX_ITEMS", 3)
    monkeypatch.setattr("evals_app.exchange.checking.MAX_ITEMS", 3)

    full = import_items(editor, "support", '{"input": 1}\n{"input": 2}\n', "jsonl")
    long = import_items(editor, "support", '{"input": 1}\n' * 4, "jsonl")

    assert "was purged" in purged["faults"][0][1]
    assert full["faults"] == [(0, "A dataset has at most 3 items. Delete some first.")]
    assert long["faults"][0][0] == 4
    assert Dataset.objects.get().item_count == 2


def test_a_worker_that_dies_after_storing_imports_nothing_twice(editor, support, monkeypatch):
    job_id = send_items(editor, "support", '{"input": 1}\n', "jsonl").body["id"]

    def die(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Job, "finish", die)
    with pytest.raises(KeyboardInterrupt):
        run_claimed(job_id)
    monkeypatch.undo()
    Job.objects.update(lease_until="2020-01-01T00:00Z")
    job = run_claimed(job_id)

    assert (job.state, job.result["added"], job.attempts) == ("done", 1, 2)
    assert Dataset.objects.get().version == 1


def test_a_worker_that_dies_while_storing_stores_nothing(editor, support, monkeypatch):
    job_id = send_items(editor, "support", '{"input": 1}\n{"input": 2}\n', "jsonl").body["id"]
    monkeypatch.setattr(import_job, "ITEMS_PER_BATCH", 1)

    def die(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("evals_app.datasets.changes.ItemsChange.save", die)
    with pytest.raises(KeyboardInterrupt):
        run_claimed(job_id)
    monkeypatch.undo()
    assert not ItemVersion.objects.exists()
    Job.objects.update(lease_until="2020-01-01T00:00Z")
    job = run_claimed(job_id)

    assert (job.result["added"], Dataset.objects.get().version) == (2, 1)


def test_a_lost_role_and_changed_schemas_refuse_the_import(editor, support, person, monkeypatch):
    lost = send_items(editor, "support", '{"input": 1}\n', "jsonl").body["id"]
    person.memberships.update(role="viewer")
    refused = run_claimed(lost)
    person.memberships.update(role="editor")
    started = send_items(editor, "support", '{"input": 1}\n', "jsonl")
    check_rows = import_job.check_rows

    def change_schema(*arguments):
        counts = check_rows(*arguments)
        Dataset.objects.update(input_schema={"type": "string"})
        return counts

    monkeypatch.setattr(import_job, "check_rows", change_schema)
    changed = run_job(editor, started)["result"]

    assert refused.state == "failed"
    assert (changed["refused"], changed["stored"]) == (1, False)
    assert not ItemVersion.objects.exists()


def test_a_dataset_that_moves_to_another_team_during_the_check_is_not_changed(editor, support, monkeypatch):
    job_id = send_items(editor, "support", '{"input": 1}\n', "jsonl").body["id"]
    check_rows = import_job.check_rows

    def move(*arguments):
        Dataset.objects.update(owner_id="elsewhere")
        return check_rows(*arguments)

    monkeypatch.setattr(import_job, "check_rows", move)

    assert run_claimed(job_id).state == "failed"
    assert not ItemVersion.objects.exists()


def test_an_account_that_is_switched_off_during_the_check_changes_nothing(editor, support, monkeypatch):
    job_id = send_items(editor, "support", '{"input": 1}\n', "jsonl").body["id"]
    check_rows = import_job.check_rows

    def switch_off(*arguments):
        User.objects.update(is_active=False)
        return check_rows(*arguments)

    monkeypatch.setattr(import_job, "check_rows", switch_off)

    assert run_claimed(job_id).result["stored"] is False
    assert not ItemVersion.objects.exists()


def test_a_form_and_an_idempotency_key_start_one_job(editor, support):
    file = SimpleUploadedFile("questions.csv", b"Q\nOne\n", "text/csv")
    answer = editor.client.post("/api/datasets/support/import", {"file": file, "columns": '{"Q": "input"}'})
    first = send_items(editor, "support", '{"input": 1}\n', "jsonl", headers={"Idempotency-Key": "k"})
    again = send_items(editor, "support", '{"input": 1}\n', "jsonl", headers={"Idempotency-Key": "k"})
    other = send_items(editor, "support", '{"input": 2}\n', "jsonl", headers={"Idempotency-Key": "k"})

    assert answer.status_code == 202, answer.content
    run_claimed(answer.json()["id"])
    assert [row.input for row in current()] == ["One"]
    assert first.body["id"] == again.body["id"]
    assert other.status_code == 422


@pytest.mark.parametrize(
    ("options", "status", "field"),
    [
        ({"format": "xml"}, 400, "format"),
        ({"columns": "[]"}, 400, "columns"),
        ({"columns": {"a": 1}}, 400, "columns"),
        ({"name": "x" * 300}, 400, "name"),
    ],
)
def test_faulty_options_are_refused(editor, support, options, status, field):
    answer = send_items(editor, "support", "input\nOne\n", "csv", **options)

    assert (answer.status_code, answer.body["issues"][0]["field"]) == (status, field)
    assert not Job.objects.exists()


@pytest.mark.parametrize("columns", ["[" * 50_000, '{"a": "input", "a": "groundTruth"}', "{"])
def test_hostile_columns_of_a_form_are_refused(editor, support, columns):
    editor.client.raise_request_exception = False
    file = SimpleUploadedFile("questions.csv", b"Q\nOne\n", "text/csv")

    answer = editor.client.post("/api/datasets/support/import", {"file": file, "columns": columns})

    assert (answer.status_code, answer.json()["issues"][0]["field"]) == (400, "columns")
    assert not Job.objects.exists()


def test_large_files_and_other_types_are_refused(editor, support, settings):
    settings.IMPORT_MAX_BYTES = 10
    large = send_items(editor, "support", "input\nOne or two\n", "csv")
    form = editor.client.post(
        "/api/datasets/support/import", {"file": SimpleUploadedFile("a.csv", b"input\nOne or two\n")}
    )
    other = editor.client.generic("POST", "/api/datasets/support/import", b"x", content_type="image/png")

    assert (large.status_code, form.status_code, other.status_code) == (413, 413, 415)
    assert not Job.objects.exists()


def test_only_editors_import(support):
    for role, owner, status in (("viewer", "support", 403), ("manager", "elsewhere", 404)):
        caller = Caller(api_key(member(role, owner, username=f"{role}-{owner}")))
        assert send_items(caller, "support", '{"input": 1}\n', "jsonl").status_code == status
    assert send_items(Caller(), "support", '{"input": 1}\n', "jsonl").status_code == 401
