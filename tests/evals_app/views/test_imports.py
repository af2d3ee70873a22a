"""The pages that import a file: upload, preview with a mapping of columns, progress, and faults by line."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from evals_app.models import ItemVersion
from jobs_app.models import Job, JobFile
from jobs_app.runner import run_claimed
from tests.evals_app.experiment_runs import make_dataset
from tests.factories import member

pytestmark = pytest.mark.django_db

PATH = "/datasets/support/import"


@pytest.fixture
def support():
    return make_dataset(owner_id="support")


@pytest.fixture
def editor(client, support):
    user = member("editor", "support")
    client.force_login(user)
    return user


def upload(client, content, name="questions.csv"):
    return client.post(PATH, {"file": SimpleUploadedFile(name, content)})


def text(answer, status=200):
    assert answer.status_code == status, answer.content.decode()[:500]
    return answer.content.decode()


def test_a_csv_is_uploaded_previewed_mapped_and_imported(client, editor):
    path = upload(client, b"Question,Expected,Topic\nWhen?,At nine.,hours\nWhere?,,\n").url
    preview = text(client.get(path))
    started = client.post(path, {"column-0": "input", "column-1": "groundTruth", "column-2": "metadata.Topic"}).url
    waiting = text(client.get(started))
    run_claimed(Job.objects.get(kind="import_items").pk)
    done = text(client.get(started))

    assert '<option value="input" selected>Input</option>' in preview
    assert '<option value="groundTruth" selected>Ground truth</option>' in preview
    assert '<td dir="auto">At nine.</td>' in preview
    assert "Waiting for a worker." in waiting
    assert "Version 1: 2 items added, 0 changed." in done
    first, second = ItemVersion.objects.order_by("item_id")
    assert (first.input, first.ground_truth, first.metadata) == ("When?", "At nine.", {"Topic": "hours"})
    assert (second.ground_truth, second.metadata) == (None, None)
    assert not JobFile.objects.exists()
    assert "questions.csv" in text(client.get(PATH))


def test_an_export_with_numbers_is_imported_again(client, editor):
    """Cells say only texts, objects and lists. So a number has a column of its own in an export."""
    path = upload(client, b"input,inputJson,groundTruthJson\nOne,,1\n,2,true\n").url
    preview = text(client.get(path))
    client.post(path, {"column-0": "input", "column-1": "inputJson", "column-2": "groundTruthJson"})
    run_claimed(Job.objects.get(kind="import_items").pk)

    assert '<option value="inputJson" selected>Input (JSON)</option>' in preview
    items = ItemVersion.objects.order_by("item_id").values_list("input", "ground_truth")
    assert [*items] == [("One", 1), (2, True)]


def test_faults_are_listed_by_line_and_the_columns_mapped_again(client, editor):
    path = upload(client, b"Q,A\n,One\nTwo,\n").url
    first = client.post(path, {"column-0": "input", "column-1": "groundTruth"}).url
    run_claimed(Job.objects.get(kind="import_items").pk)
    page = text(client.get(first))
    fragment = client.get(f"{first}/progress")
    again = client.post(first, {"column-0": "", "column-1": "input"}).url
    run_claimed(Job.objects.get(kind="import_items", state="queued").pk)

    assert "Nothing was imported: 1 of 2 rows has errors." in page
    assert '<th scope="row" class="align-right">2</th>' in page
    assert "The input is blank." in page
    toast = json.loads(fragment.headers["HX-Trigger"])["job-finished"]
    assert (toast["kind"], "Nothing was imported" in toast["message"]) == ("fault", True)
    assert "line" in text(client.get(again)).lower()
    assert not ItemVersion.objects.exists()


def test_json_lines_need_no_mapping(client, editor):
    path = upload(client, b'{"input": {"a": 1}}\n', "items.jsonl").url
    page = text(client.get(path))
    client.post(path)
    run_claimed(Job.objects.get(kind="import_items").pk)

    assert "{&quot;a&quot;:1}" in page
    assert "column-0" not in page
    assert ItemVersion.objects.get().input == {"a": 1}
    assert "imported or deleted" in text(client.get(path))
    client.post(path)  # the file is gone
    assert Job.objects.filter(kind="import_items").count() == 1


def test_a_preview_has_a_limited_number_of_columns(client, editor):
    names = [f"k{number}" for number in range(300)]
    table = upload(client, f"{','.join(names)}\nOne\n".encode()).url
    too_many = text(client.get(table))
    objects = upload(client, json.dumps(dict.fromkeys(names)).encode(), "items.jsonl").url

    assert "more than 200 columns. Delete those" in too_many
    assert "<select" not in too_many
    assert text(client.get(objects)).count('<th scope="col"') == 200


def test_faulty_files_and_mappings_start_nothing(client, editor, settings):
    assert "Choose a file." in text(client.post(PATH), 422)
    assert "must end with .csv" in text(upload(client, b"x", "image.png"), 422)
    broken = upload(client, b'a\n"b\n').url
    assert "The file cannot be read." in text(client.get(broken))
    assert "must not contain a NUL character." in text(client.get(upload(client, b"a\0,b\n1,2\n").url))
    path = upload(client, b"a,b\n1,2\n").url
    assert "The file was" not in text(client.get(path))
    assert "No column is the input." in text(client.post(path, {"column-0": "", "column-1": "groundTruth"}), 422)
    assert "More than one column is mapped to input." in text(
        client.post(path, {"column-0": "input", "column-1": "input"}), 422
    )
    assert "No column is the input." in text(client.post(path, {"column-0": "input.a\0"}), 422)
    settings.IMPORT_MAX_BYTES = 3
    assert "larger than" in text(upload(client, b"input\nOne\n"), 422)
    assert not Job.objects.filter(kind="import_items").exists()
    assert JobFile.objects.count() == 1  # of the last upload alone


def test_only_editors_import_and_see_their_own_imports_alone(client, editor):
    path = upload(client, b"input\nOne\n").url
    for role, owner, status in (
        ("editor", "support", 404),
        ("viewer", "support", 403),
        ("manager", "elsewhere", 404),
    ):
        client.force_login(member(role, owner, username=f"{role}-{owner}"))
        assert client.get(path).status_code == status
        assert client.post(path, {"column-0": "input"}).status_code == status
        assert client.get(f"{path}/progress").status_code == status
        if role != "editor":
            assert client.get(PATH).status_code == status
            assert upload(client, b"input\nOne\n").status_code == status
    assert client.get("/datasets/support/export").status_code == 404
    assert not Job.objects.filter(kind="import_items").exists()


def test_the_items_are_downloaded(client, editor, support):
    make_dataset("One", pk="other", owner_id="support")

    answer = client.get("/datasets/other/export?format=json")

    assert b"".join(answer.streaming_content) == b'[\n{"input":"One","groundTruth":null,"source":null}\n]\n'
    assert 'filename="other-v1.json"' in answer["Content-Disposition"]
