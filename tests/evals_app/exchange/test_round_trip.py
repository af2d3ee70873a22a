"""Exports of items in three formats, which are equal when they are imported anew."""

import csv
import json
import math
from io import StringIO

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evals_app.datasets.changes import add_items, change_item
from evals_app.datasets.purging import purge_item
from evals_app.exchange import writing
from evals_app.models import Dataset, ItemVersion
from tests.api_client import Caller
from tests.conftest import DRILL
from tests.evals_app.exchange.files import export_items, import_items
from tests.evals_app.experiment_runs import make_dataset
from tests.factories import api_key, member

pytestmark = pytest.mark.django_db

FORMATS = ("csv", "json", "jsonl")
MANY = 5000 if DRILL else 1100  # more than two batches
AWKWARD = (
    "plain",
    "",
    " spaces and\ttabs ",
    'quotes "inside", commas; semicolons',
    "two\nlines\r\nand a return\r",
    "=1+1",
    "+49 30",
    "-5",
    "@sum",
    "'quoted",
    "'=quoted formula",
    "''",
    "{no json",
    "[1]",
    "{}",
    "5",
    "true",
    "null",
    "Паровоз 🚂 ü",
    5,
    -5,
    2.5,
    1e22,
    True,
    False,
    {"a": [1, "=2", None]},
    [],
    {},
)


@pytest.fixture
def editor():
    return Caller(api_key(member("editor", "support")))


def copied(editor, content, file_format):
    """Import a file into a new dataset and return the dataset."""
    copy = make_dataset(pk=f"copy-{file_format}", owner_id="support")
    result = import_items(editor, copy.pk, content, file_format)
    assert result["faults"] == []
    return Dataset.objects.get(pk=copy.pk)


def contents(dataset):
    rows = ItemVersion.objects.current().filter(dataset=dataset).select_related("item").order_by("item_id")
    return [{"external_id": row.item.external_id, **row.content} for row in rows]


@pytest.mark.parametrize("file_format", FORMATS)
def test_awkward_values_are_equal_when_imported_anew(editor, file_format):
    items = [{"input": value, "ground_truth": other} for value, other in zip(AWKWARD, (None, *AWKWARD), strict=False)]
    full = {
        "external_id": "q-1",
        "input": None,
        "expected_trajectory": {"steps": [{"name": "add"}]},
        "tool_mocks": [{"toolName": "add", "args": {}, "output": "=1"}],
        "unmocked_tool_policy": "deny",
        "scorer_keys": [],
        "request_context": {"tier": "gold"},
        "metadata": {"topic": "@home"},
        "source": {"type": "trace", "referenceId": "r"},
    }
    dataset = make_dataset(owner_id="support")
    add_items(dataset, [*items, full])

    content = export_items(editor, dataset.pk, file_format)
    copy = copied(editor, content, file_format)

    assert contents(copy) == contents(dataset)
    assert export_items(editor, copy.pk, file_format) == content
    assert copy.version == 1


@pytest.mark.parametrize("file_format", FORMATS)
def test_many_items_are_equal_when_imported_anew(editor, file_format, django_assert_max_num_queries):
    dataset = make_dataset(owner_id="support")
    rows = [{"input": {"question": f"Question {n}"}, "ground_truth": f"=answer {n}"} for n in range(MANY)]
    add_items(dataset, [{**row, "external_id": f"q{n}"} for n, row in enumerate(rows)])

    # Two for each batch, and a CSV file reads the items twice.
    with django_assert_max_num_queries(4 * math.ceil(MANY / writing.BATCH_SIZE) + 12):
        content = export_items(editor, dataset.pk, file_format)
    copy = copied(editor, content, file_format)

    assert (copy.item_count, copy.version) == (MANY, 1)
    assert export_items(editor, copy.pk, file_format) == content


def test_a_formula_is_text_in_a_spreadsheet(editor):
    make_dataset("=1+1", "+1", "-1", "@a", "\n=1", "\uff1d1", "fine", owner_id="support")

    rows = list(csv.DictReader(StringIO(export_items(editor, "support", "csv").decode())))

    assert [row["input"] for row in rows] == ["'=1+1", "'+1", "'-1", "'@a", "'\n=1", "'\uff1d1", "fine"]


def test_a_file_has_the_columns_that_its_items_use(editor):
    make_dataset({"input": "One", "ground_truth": 1}, owner_id="support")

    lines = export_items(editor, "support", "csv").decode().splitlines()

    assert lines == ["input,groundTruth,groundTruthJson,source", "One,,1,"]


def test_an_export_has_the_items_of_a_version_without_purged_ones(editor):
    dataset = make_dataset("One", "Two", owner_id="support")
    first, second = ItemVersion.objects.order_by("item_id").select_related("item")
    change_item(dataset, first.item_id, {"input": "Uno"})

    texts = [json.loads(export_items(editor, "support", "json", version)) for version in (1, 2)]
    purge_item(dataset, second.item, member("publisher", "support"))

    assert [[item["input"] for item in items] for items in texts] == [["One", "Two"], ["Uno", "Two"]]
    assert [item["input"] for item in json.loads(export_items(editor, "support", "json"))] == ["Uno"]
    assert b"Two" not in export_items(editor, "support", "jsonl", 1)


def test_an_export_is_a_file_for_those_who_may_read(editor):
    make_dataset("One", owner_id="support")
    stranger = Caller(api_key(member("manager", "elsewhere")))

    answer = editor.client.get("/api/datasets/support/export?format=csv", headers={"Accept": "text/csv"})

    assert answer["Content-Disposition"] == 'attachment; filename="support-v1.csv"'
    assert answer["Content-Type"].startswith("text/csv")
    assert stranger.get("/api/datasets/support/export").body["code"] == "DATASET_NOT_FOUND"
    assert editor.get("/api/datasets/support/export?format=xml").body["issues"][0]["field"] == "format"
    assert Caller().get("/api/datasets/support/export").status_code == 401


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_batch_whose_items_are_all_purged_leaves_no_trace(editor, monkeypatch, file_format):
    dataset = make_dataset("One", "Two", "Three", owner_id="support")
    in_one_batch = export_items(editor, "support", file_format).decode()
    monkeypatch.setattr(writing, "BATCH_SIZE", 1)
    assert export_items(editor, "support", file_format).decode() == in_one_batch
    first, _, third = ItemVersion.objects.order_by("item_id").select_related("item")

    for version in (first, third):
        purge_item(dataset, version.item, member("publisher", "support"))

    content = export_items(editor, "support", file_format)
    assert inputs_of(content, file_format) == ["Two"]


def inputs_of(content, file_format):
    if file_format == "csv":
        return [row["input"] for row in csv.DictReader(StringIO(content.decode()))]
    rows = json.loads(content) if file_format == "json" else map(json.loads, content.splitlines())
    return [row["input"] for row in rows]


def test_a_batch_reads_nothing_of_earlier_items(editor):
    """PostgreSQL reads a joined table from its start, which took a minute for 100,000 items."""
    make_dataset("One", "Two", owner_id="support")

    with CaptureQueriesContext(connection) as queries:
        export_items(editor, "support", "json")

    read = [query["sql"] for query in queries if "evals_app_itemversion" in query["sql"]]
    assert read
    assert not [sql for sql in read if "JOIN" in sql]
