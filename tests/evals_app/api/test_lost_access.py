"""Items that a program outside runs, and whose caller loses access meanwhile."""

import pytest

from access_app.models import ApiKey, Membership
from agents_app.registry import workflow
from runs_app.events import stream_access
from tests.api_client import Caller
from tests.evals_app.experiment_runs import make_dataset
from tests.factories import api_key, member

pytestmark = pytest.mark.django_db(transaction=True)  # the workflow writes from a thread of its own

EXPERIMENTS = "/api/datasets/support/experiments"


def lose_key():
    ApiKey.objects.get().revoke()


def lose_membership():
    Membership.objects.all().delete()


@pytest.mark.parametrize(("lose", "status"), [(lose_key, 401), (lose_membership, 404)])
def test_a_caller_who_loses_access_gets_no_result(lose, status, monkeypatch):
    monkeypatch.setattr(stream_access, "ACCESS_CHECK_INTERVAL", 0)

    @workflow("change-rights")
    def change_rights() -> str:
        """Change the rights of the caller."""
        lose()
        return "changed"

    dataset = make_dataset({"input": {}}, owner_id="support")
    caller = Caller(api_key(member("editor", "support")))
    body = {"start": False, "targetType": "workflow", "targetId": "change-rights"}
    experiment = caller.post(EXPERIMENTS, body).body["id"]

    answer = caller.post(f"{EXPERIMENTS}/{experiment}/items/{dataset.items.get().pk}/run")

    assert (answer.status_code, "result" in answer.body) == (status, False)
