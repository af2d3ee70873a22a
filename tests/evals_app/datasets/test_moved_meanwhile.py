"""Changes of a dataset that moves to another team after the role was checked."""

import pytest

from evals_app.api import datasets as api
from evals_app.models import Dataset
from evals_app.views import dataset_settings as pages
from tests.api_client import Caller
from tests.evals_app.experiment_runs import make_dataset
from tests.factories import api_key, member

pytestmark = pytest.mark.django_db


def move_before(monkeypatch, module):
    """Move the dataset when a request, whose role is checked, is read."""
    parse = module.parse_dataset_change

    def move(body):
        Dataset.objects.update(owner_id="sales")
        return parse(body)

    monkeypatch.setattr(module, "parse_dataset_change", move)


def test_a_patch_is_refused(monkeypatch):
    dataset = make_dataset(owner_id="support")
    caller = Caller(api_key(member("editor", "support")))
    move_before(monkeypatch, api)

    answer = caller.patch(f"/api/datasets/{dataset.pk}", {"description": "Changed"})

    assert (answer.status_code, answer.body["code"]) == (404, "DATASET_NOT_FOUND")
    dataset.refresh_from_db()
    assert (dataset.owner_id, dataset.description) == ("sales", "")


def test_settings_of_the_page_are_refused(monkeypatch, client):
    dataset = make_dataset(owner_id="support")
    client.force_login(member("editor", "support"))
    move_before(monkeypatch, pages)

    answer = client.post(f"/datasets/{dataset.pk}/settings", {"name": "Changed"})

    assert answer.status_code == 404
    dataset.refresh_from_db()
    assert (dataset.owner_id, dataset.name) == ("sales", "Support")
