"""POST runs/:id/add-to-dataset: the item of a run, with what the caller changes."""

import pytest

from evals_app.models import ItemVersion
from runs_app.models import RunEvent
from tests.api_client import Caller
from tests.evals_app.experiment_runs import make_dataset
from tests.factories import AgentFactory, api_key, member
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def person():
    return member("editor", "support")


@pytest.fixture
def run(person):
    make_dataset(owner_id="support")
    agent = AgentFactory(owner_id="support")
    run = RunFactory(agent=agent, owner_id="support", requested_by=person, output="At nine.")
    for number, (kind, fields) in enumerate(
        (("tool-call", {"toolName": "clock", "args": {"city": "Bonn"}}), ("tool-result", {"result": "9:00"})), 900
    ):
        data = {"type": kind, "payload": {"toolCallId": "c1", **fields}}
        RunEvent.objects.create(run=run, number=number, data=data)
    return run


@pytest.fixture
def editor(person):
    return Caller(api_key(person))


def path(run):
    return f"/api/runs/{run.pk}/add-to-dataset"


def test_a_run_becomes_an_item_with_its_source(editor, run):
    answer = editor.post(path(run), {"datasetId": "support"})

    assert answer.status_code == 201, answer.body
    assert answer.body["groundTruth"] == "At nine."
    assert answer.body["source"] == {"type": "trace", "referenceId": str(run.pk)}
    assert (answer.body["toolMocks"], answer.body["expectedTrajectory"]) == (None, None)
    assert answer.body["datasetVersion"] == 1


def test_the_caller_edits_the_item_and_keeps_the_calls(editor, run):
    body = {
        "datasetId": "support",
        "input": "When?",
        "groundTruth": None,
        "externalId": "q1",
        "source": {"type": "llm"},
    }
    answer = editor.post(path(run), {**body, "includeToolMocks": True, "includeTrajectory": True})

    assert (answer.body["input"], answer.body["groundTruth"], answer.body["externalId"]) == ("When?", None, "q1")
    assert answer.body["toolMocks"] == [{"toolName": "clock", "args": {"city": "Bonn"}, "output": "9:00"}]
    assert answer.body["expectedTrajectory"]["steps"] == [{"name": "clock", "stepType": "tool_call"}]
    assert answer.body["source"]["type"] == "trace"


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({}, 400, "datasetId"),
        ({"datasetId": "support", "includeToolMocks": 1}, 400, "includeToolMocks"),
        ({"datasetId": "support", "metadata": []}, 400, "metadata"),
        ({"datasetId": "nothing"}, 404, None),
    ],
)
def test_a_faulty_body_stores_nothing(editor, run, body, status, field):
    answer = editor.post(path(run), body)

    assert answer.status_code == status
    assert field is None or [issue["field"] for issue in answer.body["issues"]] == [field]
    assert not ItemVersion.objects.exists()


def test_a_run_whose_item_would_be_too_large_is_refused(editor, run, settings):
    settings.RUN_MAX_INPUT = 1024
    run.output = "y" * 1024
    run.save(update_fields=["output"])

    answer = editor.post(path(run), {"datasetId": "support"})

    assert answer.status_code == 400
    assert answer.body["issues"] == [{"field": "input", "message": "An item must not exceed 1 KB."}]
    assert not ItemVersion.objects.exists()


def test_only_readers_of_the_run_and_editors_of_the_dataset_add_it(run):
    elsewhere = member("manager", "elsewhere")
    make_dataset(pk="mine", owner_id="elsewhere")
    assert Caller(api_key(elsewhere)).post(path(run), {"datasetId": "mine"}).status_code == 404
    viewer = member("viewer", "support")
    own = RunFactory(agent=run.agent, owner_id="support", requested_by=viewer)
    assert Caller(api_key(viewer)).post(path(own), {"datasetId": "support"}).status_code == 403
    assert Caller().post(path(run), {"datasetId": "support"}).status_code == 401
    assert not ItemVersion.objects.exists()


def test_a_former_member_adds_the_question_and_the_answer_alone(run, person):
    person.memberships.all().delete()
    make_dataset(pk="new-team", owner_id="new")
    person.memberships.create(owner_id="new", role="editor")

    body = {"datasetId": "new-team", "includeToolMocks": True}
    answer = Caller(api_key(person)).post(path(run), body)

    assert (answer.status_code, answer.body["groundTruth"]) == (201, "At nine.")
    assert (answer.body["toolMocks"], answer.body["requestContext"]) == (None, None)


def test_an_unfinished_run_is_refused(editor, run):
    run.status = "running"
    run.finished_at = None
    run.save()

    assert editor.post(path(run), {"datasetId": "support"}).body["code"] == "run_unfinished"


def test_what_is_not_supported_answers_501_in_the_shape_of_errors(editor, run):
    for route in ("support/generate-items", "cluster-failures"):
        answer = editor.post(f"/api/datasets/{route}", {})
        assert (answer.status_code, answer.body["code"]) == (501, "not_implemented")
    assert editor.post("/api/datasets/nothing/generate-items", {}).status_code == 404
    assert editor.post("/api/datasets", {"name": "Cluster failures"}).body["id"] == "cluster-failures-1"


def test_a_run_that_is_there_already_is_not_added_again(editor, run):
    first, second = (editor.post(path(run), {"datasetId": "support"}) for _ in range(2))
    edited = editor.post(path(run), {"datasetId": "support", "groundTruth": "At ten."})

    assert (second.status_code, second.body) == (201, first.body)
    assert edited.body["id"] != first.body["id"]
    assert [item.ground_truth for item in ItemVersion.objects.order_by("item_id")] == ["At nine.", "At ten."]
