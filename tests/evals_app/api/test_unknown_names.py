"""Names in bodies of datasets, items and experiments that nothing reads: warnings, or errors of strict requests."""

import pytest

from evals_app.models import Dataset, Experiment, ItemVersion
from tests.api_client import Caller
from tests.evals_app.experiment_runs import make_dataset
from tests.factories import AgentFactory, api_key, member

pytestmark = pytest.mark.django_db

EXPERIMENT = {"targetId": "concierge", "maxConcurency": 2}


@pytest.fixture
def caller():
    make_dataset("One", owner_id="support")
    AgentFactory(id="concierge", owner_id="support")
    return Caller(api_key(member("editor", "support")))


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("", {"name": "New", "ownerId": "support", "id": "new"}, "id"),
        ("/support/items", {"input": "Two", "groundtruth": "2"}, "groundtruth"),
        ("/support/items/batch", {"items": [{"input": "Two"}, {"input": "3", "truth": "3"}]}, "items[1].truth"),
        ("/support/experiments", EXPERIMENT, "maxConcurency"),
    ],
)
def test_a_name_that_nothing_reads_is_told(caller, path, body, field):
    strict = caller.post(f"/api/datasets{path}?strict=true", body)
    counts = [model.objects.count() for model in (Dataset, ItemVersion, Experiment)]
    answer = caller.post(f"/api/datasets{path}", body)

    assert (strict.status_code, [issue["field"] for issue in strict.body["issues"]]) == (400, [field])
    assert counts == [1, 1, 0]
    assert (answer.status_code, [warning["field"] for warning in answer.body["warnings"]]) == (201, [field])


def test_changes_are_checked_too(caller):
    item = ItemVersion.objects.get().item_id
    for path, body in (("", {"description": "New", "descripton": "x"}), (f"/items/{item}", {"descripton": "x"})):
        answer = caller.patch(f"/api/datasets/support{path}", body)
        assert (answer.status_code, [warning["field"] for warning in answer.body["warnings"]]) == (200, ["descripton"])
