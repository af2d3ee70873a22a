"""Datasets and items in the API: create, change, batches, versions, history, purge, and who may."""

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agentcms.api.pagination import ROWS_PER_READ
from evals_app.datasets.schema import TOO_MANY_STEPS_MESSAGE
from evals_app.models import Dataset, ItemVersion
from tests.api_client import Caller
from tests.evals_app.experiment_runs import make_dataset
from tests.factories import api_key, member

pytestmark = pytest.mark.django_db

DATASETS = "/api/datasets"
ONE = f"{DATASETS}/support"
ITEMS = f"{ONE}/items"


@pytest.fixture
def editor():
    return Caller(api_key(member("editor", "support")))


@pytest.fixture
def publisher():
    return Caller(api_key(member("publisher", "support")))


@pytest.fixture
def support():
    return Dataset.objects.create(pk="support", name="Support", owner_id="support")


def add(caller, text, **fields):
    return caller.post(ITEMS, {"input": text, **fields})


def inputs(answer):
    return [item["input"] for item in answer.body["items"]]


def test_a_dataset_is_created_changed_and_deleted(editor, publisher):
    created = editor.post(DATASETS, {"name": "Support questions", "scorerIds": ["exact"], "targetType": "agent"})
    path = f"{DATASETS}/{created.body['id']}"
    changed = editor.patch(path, {"description": "Of customers", "scorerIds": None})

    assert (created.status_code, created.body["id"], created.body["version"]) == (201, "support-questions", 0)
    assert (changed.body["description"], changed.body["scorerIds"], changed.body["targetType"]) == (
        "Of customers",
        [],
        "agent",
    )
    assert editor.get(DATASETS).body["pagination"] == {"total": 1, "page": 0, "perPage": 100, "hasMore": False}
    assert editor.delete(path).status_code == 403
    assert publisher.delete(path).status_code == 200
    assert editor.get(path).body["code"] == "DATASET_NOT_FOUND"


def test_an_item_can_be_sent_back_as_the_response_has_it(editor, support):
    item = add(editor, {"distance": 1e20}, groundTruth=1.5e19, metadata={"mass": 2e30}).body
    path = f"{ITEMS}/{item['id']}"
    read = editor.get(path).body
    changed = editor.patch(path, {name: read[name] for name in ("input", "groundTruth", "metadata")})

    assert (changed.status_code, changed.body["datasetVersion"]) == (200, 1)
    assert changed.body["input"] == {"distance": 1e20}


def test_scorers_that_do_not_exist_are_warned_of_and_refused_by_strict_requests(editor):
    body = {"name": "Support", "ownerId": "support", "scorerIds": ["exact", "exakt"]}
    strict = editor.post(f"{DATASETS}?strict=true", body)
    created = editor.post(DATASETS, body)
    path = f"{DATASETS}/{created.body['id']}"
    warning = {"field": "scorerIds[1]", "key": "exakt"}
    message = "Scorer with id exakt not found. Experiments that use it cannot start."

    assert (strict.status_code, strict.body["issues"]) == (400, [{"field": "scorerIds[1]", "message": message}])
    assert (created.status_code, created.body["warnings"]) == (201, [{**warning, "message": message}])
    assert editor.get(DATASETS).body["pagination"]["total"] == 1
    assert editor.patch(path, {"scorerIds": ["exact", "exakt"]}).body["warnings"][0]["key"] == "exakt"
    assert editor.patch(f"{path}?strict=true", {"scorerIds": ["exakt"]}).status_code == 400
    assert editor.get(path).body["scorerIds"] == ["exact", "exakt"]
    assert "warnings" not in editor.patch(path, {"description": "No scorers in it"}).body


def test_two_datasets_of_one_name_get_two_ids(editor):
    ids = {editor.post(DATASETS, {"name": "Same"}).body["id"] for _ in range(2)}

    assert len(ids) == 2


def test_a_version_that_a_dataset_does_not_have_yet_is_refused(editor, support):
    """Later it may have other items than the current ones."""
    item = add(editor, "One").body
    message = {"field": "version", "message": "The newest version of the dataset is 1."}

    for path in (f"{ITEMS}?version=2", f"{ONE}/export?version=2"):
        answer = editor.get(path)
        assert (answer.status_code, answer.body["issues"]) == (400, [message])
    assert editor.get(f"{ITEMS}/{item['id']}/versions/2").status_code == 404
    assert editor.get(f"{ITEMS}/{item['id']}/versions/1").body["input"] == "One"


def test_each_change_of_items_is_a_version(editor, support):
    first = add(editor, "One", groundTruth="1").body
    batch = editor.post(f"{ITEMS}/batch", {"items": [{"input": "Two"}, {"input": "Three"}]}).body
    editor.patch(f"{ITEMS}/{first['id']}", {"groundTruth": "uno"})
    deleted = editor.delete(f"{ITEMS}/batch", {"itemIds": [batch["items"][0]["id"]]})

    assert deleted.body == {"success": True, "deletedCount": 1}
    assert editor.get(ONE).body["version"] == 4
    assert inputs(editor.get(ITEMS)) == ["One", "Three"]
    assert inputs(editor.get(f"{ITEMS}?version=2")) == ["One", "Two", "Three"]
    assert editor.get(f"{ITEMS}?version=3").body["items"][0]["groundTruth"] == "uno"
    assert editor.get(f"{ITEMS}/{first['id']}/versions/2").body["groundTruth"] == "1"
    versions = editor.get(f"{ONE}/versions").body["versions"]
    assert [(row["version"], row["added"], row["changed"], row["deleted"]) for row in versions] == [
        (4, 0, 0, 1),
        (3, 0, 1, 0),
        (2, 2, 0, 0),
        (1, 1, 0, 0),
    ]


def test_an_equal_change_makes_no_version(editor, support):
    item = add(editor, {"question": "One"}).body

    editor.patch(f"{ITEMS}/{item['id']}", {"input": {"question": "One"}})

    assert editor.get(ONE).body["version"] == 1


def test_the_history_of_an_item_shows_its_deletion(editor, support):
    item = add(editor, "One").body
    editor.delete(f"{ITEMS}/{item['id']}")

    history = editor.get(f"{ITEMS}/{item['id']}/history").body["history"]

    assert [(row["datasetVersion"], row["validTo"], row["isDeleted"]) for row in history] == [
        (2, None, True),
        (1, 2, False),
    ]
    assert editor.get(f"{ITEMS}/{item['id']}").status_code == 404


def test_an_external_id_replaces_the_item_that_has_it(editor, support):
    first = add(editor, "One", externalId="q1", metadata={"topic": "a"}).body
    second = add(editor, "Uno", externalId="q1").body
    editor.delete(f"{ITEMS}/{first['id']}")
    twice = editor.post(f"{ITEMS}/batch", {"items": [{"input": word, "externalId": "q1"} for word in ("A", "B")]})

    assert second["id"] == first["id"]
    assert (second["metadata"], second["datasetVersion"]) == ({"topic": "a"}, 2)
    assert {item["id"] for item in twice.body["items"]} == {first["id"]}
    assert inputs(editor.get(ITEMS)) == ["B"]
    assert editor.get(ONE).body["itemCount"] == 1


def test_items_must_fit_the_schemas_of_the_dataset(editor, support):
    schema = {"type": "object", "required": ["question"]}
    editor.patch(ONE, {"inputSchema": schema})

    refused = editor.post(f"{ITEMS}/batch", {"items": [{"input": {"question": "Fine"}}, {"input": {}}]})
    add(editor, {"question": "Fine"})
    stricter = editor.patch(ONE, {"inputSchema": {"type": "string"}})

    assert refused.status_code == 400
    assert refused.body["issues"] == [{"field": "items[1].input", "message": "'question' is a required property."}]
    assert stricter.status_code == 400
    assert editor.get(ONE).body["version"] == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "input"),
        ({"input": "One", "toolMocks": [{"toolName": "add", "output": 1}]}, "toolMocks[0].args"),
        ({"input": "One", "unmockedToolPolicy": "perhaps"}, "unmockedToolPolicy"),
        ({"input": "One", "source": {"type": "dream"}}, "source.type"),
        ({"input": "x" * 300_000}, "input"),
    ],
)
def test_a_faulty_item_names_its_field(editor, support, settings, body, field):
    settings.RUN_MAX_INPUT = 256 * 1024

    answer = editor.post(ITEMS, body)

    assert (answer.status_code, [issue["field"] for issue in answer.body["issues"]]) == (400, [field])
    assert not ItemVersion.objects.exists()


@pytest.mark.parametrize("schema", [{"type": "colour"}, {"pattern": "(?=a)b"}, {"description": "x" * 200_000}])
def test_a_faulty_schema_is_refused(editor, support, schema):
    answer = editor.patch(ONE, {"inputSchema": schema})

    assert answer.status_code == 400
    assert answer.body["issues"][0]["field"] == "inputSchema"


def test_a_schema_without_an_end_refuses_items_with_a_reason(editor, support):
    editor.patch(ONE, {"inputSchema": {"$ref": "#"}})

    answer = editor.post(ITEMS, {"input": "One"})

    assert answer.status_code == 400
    assert "without an end" in answer.body["issues"][0]["message"]


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"$ref": "#/$defs/order"}, "refers to #/$defs/order, which is not part of it"),
        ({"$ref": "#/x", "x": {"type": "word"}}, "refers to #/x, which is not a JSON Schema"),
        (
            {"unevaluatedProperties": False, "patternProperties": {"a": {}}},
            "has both unevaluatedProperties and patternProperties. Leave out one of them",
        ),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_with_a_sentence(editor, support, schema, problem):
    answer = editor.patch(ONE, {"inputSchema": schema})

    issue = {"field": "inputSchema", "message": f"This is not a JSON Schema: it {problem}."}
    assert (answer.status_code, answer.body["issues"]) == (400, [issue])
    assert "inputSchema" not in editor.get(ONE).body


def test_a_stored_schema_with_a_broken_reference_refuses_items_with_a_reason(editor, support):
    """Earlier releases stored them."""
    Dataset.objects.update(input_schema={"$ref": "#/x", "x": {"type": "word"}})

    answer = editor.post(ITEMS, {"input": "One"})

    message = "The schema refers to #/x, which is not a JSON Schema."
    assert (answer.status_code, answer.body["issues"]) == (400, [{"field": "input", "message": message}])


@pytest.mark.parametrize("is_stored", [False, True])
def test_the_steps_for_all_items_of_a_change_are_limited(editor, support, monkeypatch, is_stored):
    monkeypatch.setattr("evals_app.datasets.schema.MAX_STEPS_OF_CHANGE", 50)
    schema = {"inputSchema": {"items": {"type": "integer"}}}
    items = {"items": [{"input": [1] * 10}] * 5}

    requests = [lambda: editor.patch(ONE, schema), lambda: editor.post(f"{ITEMS}/batch", items)]
    first, second = reversed(requests) if is_stored else requests
    first()
    refused = second()

    assert refused.status_code == 400, refused.body
    assert [issue["message"] for issue in refused.body["issues"]] == [TOO_MANY_STEPS_MESSAGE]
    assert editor.get(ONE).body["itemCount"] == (5 if is_stored else 0)


def test_items_are_found_by_words_in_any_script(editor, support):
    for text in ("Wie groß ist das Паровоз?", "Other"):
        add(editor, {"question": text})

    assert len(inputs(editor.get(f"{ITEMS}?search=ПАРОВОЗ"))) == 1
    assert inputs(editor.get(f"{ITEMS}?search=nothing")) == []


def test_a_purge_redacts_every_version_and_is_logged(editor, publisher, support):
    item = add(editor, "My name is Ada", groundTruth="Ada").body
    editor.patch(f"{ITEMS}/{item['id']}", {"input": "Ada again"})

    assert editor.delete(f"{ITEMS}/{item['id']}/purge").status_code == 403
    assert publisher.delete(f"{ITEMS}/{item['id']}/purge").status_code == 200

    assert editor.get(ONE).body["version"] == 2
    assert "Ada" not in str(editor.get(f"{ITEMS}/{item['id']}/history").body)
    assert not ItemVersion.objects.filter(text__contains="ada").exists()
    assert str(item["id"]) in LogEntry.objects.get().change_message
    assert editor.patch(f"{ITEMS}/{item['id']}", {"input": "New"}).body["code"] == "DATASET_ITEM_PURGED"


def test_an_item_has_a_limit_with_all_that_it_keeps(editor, support, settings):
    settings.RUN_MAX_INPUT = 1024
    item = add(editor, "x" * 600, externalId="q1").body
    refused = [{"field": "input", "message": "An item must not exceed 1 KB."}]

    changed = editor.patch(f"{ITEMS}/{item['id']}", {"groundTruth": "y" * 600})
    replaced = add(editor, "x" * 600, externalId="q1", metadata={"note": "y" * 600})
    batch = [{"input": "Two"}, {"input": "x" * 600, "externalId": "q1", "metadata": {"note": "y" * 600}}]
    put = editor.post(f"{ITEMS}/batch", {"items": batch})

    assert [answer.status_code for answer in (changed, replaced, put)] == [400, 400, 400]
    assert changed.body["issues"] == replaced.body["issues"] == refused
    assert put.body["issues"][0]["field"] == "items[1].input"
    assert editor.patch(f"{ITEMS}/{item['id']}", {"input": "x", "groundTruth": "y" * 600}).status_code == 200
    assert editor.get(ONE).body["version"] == 2


def test_a_dataset_has_a_limit_of_items(editor, support, monkeypatch):
    monkeypatch.setattr("evals_app.datasets.changes.MAX_ITEMS", 2)

    answer = editor.post(f"{ITEMS}/batch", {"items": [{"input": n} for n in range(3)]})

    assert (answer.status_code, answer.body["code"]) == (409, "too_many_items")
    assert editor.get(ONE).body["version"] == 0


ROUTES = [
    ("GET", ONE),
    ("PATCH", ONE),
    ("DELETE", ONE),
    ("GET", f"{ONE}/versions"),
    ("GET", ITEMS),
    ("POST", ITEMS),
    ("POST", f"{ITEMS}/batch"),
    ("DELETE", f"{ITEMS}/batch"),
    ("GET", ITEMS + "/{item}"),
    ("PATCH", ITEMS + "/{item}"),
    ("DELETE", ITEMS + "/{item}"),
    ("GET", ITEMS + "/{item}/history"),
    ("GET", ITEMS + "/{item}/versions/1"),
    ("DELETE", ITEMS + "/{item}/purge"),
]


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_a_stranger_finds_no_dataset(editor, support, method, path):
    item = add(editor, "One").body["id"]
    stranger = Caller(api_key(member("manager", "elsewhere")))

    answer = stranger.call(method, path.format(item=item), None if method == "GET" else {})

    assert (answer.status_code, answer.body["code"]) == (404, "DATASET_NOT_FOUND")
    assert Caller().call(method, path.format(item=item)).status_code == 401


@pytest.mark.parametrize(("method", "path"), [route for route in ROUTES if route[0] != "GET"])
def test_a_viewer_changes_nothing(editor, support, method, path):
    item = add(editor, "One").body["id"]
    viewer = Caller(api_key(member("viewer", "support")))

    answer = viewer.call(method, path.format(item=item), {})

    assert answer.status_code == 403
    assert viewer.get(ITEMS).body["pagination"]["total"] == 1


def test_the_list_of_items_takes_a_constant_number_of_queries(
    editor, support, django_assert_num_queries, django_assert_max_num_queries
):
    editor.post(f"{ITEMS}/batch", {"items": [{"input": n} for n in range(ROWS_PER_READ + 5)]})

    with django_assert_max_num_queries(5) as few:
        editor.get(f"{ITEMS}?perPage=2")
    with django_assert_num_queries(len(few)):
        editor.get(f"{ITEMS}?perPage={ROWS_PER_READ}")


def test_datasets_are_filtered_by_any_of_their_targets_in_the_database(editor):
    for pk, targets in (("one", ["clerk", "k\u00f6ln"]), ("two", ["other"]), ("three", ["clerks"]), ("four", [])):
        make_dataset(pk=pk, owner_id="support", target_ids=targets)

    with CaptureQueriesContext(connection) as queries:
        answer = editor.get("/api/datasets?targetIds=k%C3%B6ln&targetIds=other&perPage=1&orderBy[field]=name")

    assert [row["id"] for row in answer.body["datasets"]] == ["two"]
    assert answer.body["pagination"]["total"] == 2
    reads = [query["sql"] for query in queries if '"input_schema"' in query["sql"]]
    assert reads
    assert all(sql.endswith("LIMIT 1") for sql in reads)
