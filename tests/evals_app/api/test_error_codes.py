"""The codes of errors in the bodies of responses: those of the newest client's protocol."""

import pytest

from tests.api_client import Caller
from tests.evals_app.experiment_runs import make_dataset
from tests.factories import AgentFactory, api_key, member

pytestmark = pytest.mark.django_db

EXPERIMENTS = "/api/datasets/support/experiments"


@pytest.fixture
def caller():
    AgentFactory(id="clerk")
    return Caller(api_key(member("publisher")))


def external(caller):
    """Create an experiment that a program outside drives. Return its path."""
    return f"{EXPERIMENTS}/{caller.post(EXPERIMENTS, {'start': False}).body['id']}"


def assert_error(answer, status, code):
    assert (answer.status_code, answer.body["code"]) == (status, code)
    assert answer.body["error"].strip()


@pytest.mark.parametrize("path", ["", "/items", "/experiments", "/versions", "/export"])
def test_an_unknown_dataset(caller, path):
    assert_error(caller.get(f"/api/datasets/nobody{path}"), 404, "DATASET_NOT_FOUND")


def test_an_experiment_without_items(caller):
    make_dataset()

    assert_error(caller.post(EXPERIMENTS, {"targetType": "agent", "targetId": "clerk"}), 409, "EXPERIMENT_NO_ITEMS")


def test_an_unknown_target(caller):
    make_dataset("One")

    assert_error(
        caller.post(EXPERIMENTS, {"targetType": "agent", "targetId": "nobody"}), 404, "EXPERIMENT_TARGET_NOT_FOUND"
    )


def test_a_result_for_a_finalized_experiment(caller):
    dataset = make_dataset("One")
    path, item = external(caller), str(dataset.items.get().pk)
    assert caller.post(f"{path}/results", {"itemId": item, "output": "Yes"}).status_code in (200, 201)
    assert caller.post(f"{path}/finalize").body["status"] == "completed"

    late = caller.post(f"{path}/results", {"itemId": item, "output": "No"})

    assert_error(late, 409, "EXPERIMENT_ALREADY_FINALIZED")
    assert "Create another one." in late.body["error"]
    assert [row["output"] for row in caller.get(f"{path}/results").body["results"]] == ["Yes"]
    assert caller.post(f"{path}/finalize").body["status"] == "completed"  # a repeated call changes nothing


def test_a_run_of_an_item_of_a_finalized_experiment(caller):
    dataset = make_dataset("One")
    body = {"start": False, "targetType": "agent", "targetId": "clerk"}
    path = f"{EXPERIMENTS}/{caller.post(EXPERIMENTS, body).body['id']}"
    caller.post(f"{path}/finalize")

    late = caller.post(f"{path}/items/{dataset.items.get().pk}/run")

    assert_error(late, 409, "EXPERIMENT_ALREADY_FINALIZED")


def test_a_purged_item(caller):
    dataset = make_dataset("One", "Two")
    item = dataset.items.first().pk
    path = external(caller)
    assert caller.delete(f"/api/datasets/support/items/{item}/purge").status_code == 200

    assert_error(caller.post(f"{path}/results", {"itemId": str(item), "output": "Yes"}), 409, "DATASET_ITEM_PURGED")
    assert_error(caller.patch(f"/api/datasets/support/items/{item}", {"input": "Three"}), 409, "DATASET_ITEM_PURGED")
