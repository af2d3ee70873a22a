"""Changes of a dataset that moves to another team after the role was checked."""

import json

import pytest
from django.contrib.admin.models import LogEntry

from evals_app.admin import datasets as admin
from evals_app.api import datasets as api
from evals_app.datasets import changes
from evals_app.models import Dataset, ItemVersion
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


def move_before_lock(monkeypatch, module):
    """Move the dataset while a request, whose role is checked, waits for its lock."""
    lock_dataset = module.lock_dataset

    def move(dataset_id):
        Dataset.objects.update(owner_id="sales")
        return lock_dataset(dataset_id)

    monkeypatch.setattr(module, "lock_dataset", move)


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
    move_before_lock(monkeypatch, pages)

    answer = client.post(f"/datasets/{dataset.pk}/settings", {"name": "Changed"})

    dataset.refresh_from_db()
    assert (answer.status_code, dataset.name) == (404, "Support")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "items", {"input": "New"}),
        ("POST", "items/batch", {"items": [{"input": "New"}]}),
        ("DELETE", "items/batch", {"itemIds": ["{item}"]}),
        ("PATCH", "items/{item}", {"input": "Changed"}),
        ("DELETE", "items/{item}", None),
        ("DELETE", "items/{item}/purge", None),
    ],
)
def test_changes_of_items_are_refused(method, path, body, monkeypatch):
    dataset = make_dataset("One", owner_id="support")
    item = str(dataset.items.get().pk)
    caller = Caller(api_key(member("publisher", "support")))
    move_before_lock(monkeypatch, changes)
    sent = json.loads(json.dumps(body).replace("{item}", item))

    answer = caller.call(method, f"/api/datasets/support/{path.format(item=item)}", sent)

    assert (answer.status_code, answer.body["code"]) == (409, "dataset_moved")
    assert [version.input for version in ItemVersion.objects.all()] == ["One"]


def move_before_deletion(monkeypatch, module):
    """Move the dataset when a request, whose role is checked, begins to delete it."""
    delete = module.delete_with_experiments

    def move(dataset):
        Dataset.objects.update(owner_id="sales")
        delete(dataset)

    monkeypatch.setattr(module, "delete_with_experiments", move)


def test_a_deletion_is_refused(monkeypatch):
    make_dataset(owner_id="support")
    move_before_deletion(monkeypatch, api)

    answer = Caller(api_key(member("publisher", "support"))).delete("/api/datasets/support")

    assert (answer.status_code, answer.body["code"]) == (409, "dataset_moved")
    assert Dataset.objects.exists()


def test_a_deletion_on_the_page_is_refused(monkeypatch, client):
    make_dataset(owner_id="support")
    move_before_deletion(monkeypatch, pages)
    client.force_login(member("publisher", "support"))

    answer = client.post("/datasets/support/delete")

    assert answer.status_code == 409
    assert Dataset.objects.exists()


def test_an_action_of_the_admin_changes_nothing(monkeypatch, client):
    make_dataset(owner_id="support")
    staff = member("editor", "support", is_staff=True)
    change = admin.change_settings

    def move(dataset_id, columns):
        Dataset.objects.update(owner_id="sales")
        return change(dataset_id, columns)

    monkeypatch.setattr(admin, "change_settings", move)
    client.force_login(staff)

    client.post("/admin/evals_app/dataset/", {"action": "archive", "_selected_action": ["support"]})

    assert Dataset.objects.get().archived_at is None
    assert not LogEntry.objects.exists()
