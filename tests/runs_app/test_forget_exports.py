"""Exports of a resource: while its data is deleted, and after their user has left the team of its end users."""

import threading

import pytest
from django.db import connections
from django.db.models.deletion import Collector

from jobs_app import limits, runner
from jobs_app.files import file_storage
from jobs_app.models import Job, JobFile, LeaseLost
from memory_app.realms import user_realm
from runs_app.privacy import forgetting, jobs
from runs_app.privacy.jobs import start_resource_export
from tests.factories import AgentFactory, api_key, member
from tests.memory_app.conftest import add_thread
from tests.runs_app.factories import RunFactory

WAIT = 2  # seconds that a worker may take to attach its file


@pytest.fixture
def user():
    return member("editor")


@pytest.fixture
def realm(user):
    return add_thread(user, "t-alice", "alice", [("user", "turquoise")]).realm


@pytest.mark.django_db
def test_an_export_that_is_started_meanwhile_is_deleted_too(user, realm):
    exports = []

    def export(**kwargs):
        exports.append(runner.run_claimed(str(start_resource_export(user, realm, "alice").pk)))

    forgetting.resource_forgotten.connect(export)
    try:
        runner.run_now(forgetting.FORGET, {"realm": realm, "resource": "alice"})
    finally:
        forgetting.resource_forgotten.disconnect(export)

    assert {job.state for job in exports} == {"done"}
    assert not Job.objects.filter(kind=forgetting.EXPORT_RESOURCE).exists()
    assert not JobFile.objects.exists()


@pytest.mark.django_db
def test_an_export_whose_job_is_deleted_leaves_no_file(user, realm, monkeypatch):
    saved = []

    def save_and_delete(name, file):
        saved.append(save_file(name, file))
        forgetting.delete_exports(realm, "alice")
        return saved[0]

    save_file = jobs.save_file
    monkeypatch.setattr(jobs, "save_file", save_and_delete)

    runner.run_claimed(str(start_resource_export(user, realm, "alice").pk))

    assert not file_storage().exists(saved[0])
    assert not JobFile.objects.exists()


@pytest.mark.django_db
def test_who_left_the_team_of_the_end_users_cannot_download_their_export(client):
    user = member("editor", "support")
    bearer = {"Authorization": f"Bearer {api_key(user, realm_owner='support')}"}
    export = runner.run_claimed(str(start_resource_export(user, "osupport", "alice").pk))
    url = f"/api/jobs/{export.pk}/file"
    before = client.get(url, headers=bearer).status_code

    user.memberships.update(role="viewer")
    demoted = client.get(url, headers=bearer)
    user.memberships.all().delete()

    assert (before, demoted.status_code, client.get(url, headers=bearer).status_code) == (200, 403, 403)
    assert "Editor role in support" in demoted.json()["error"]


@pytest.mark.django_db
def test_who_left_a_team_whose_runs_are_in_their_export_cannot_download_it(client):
    user = member("editor", "support")
    RunFactory(agent=AgentFactory(owner_id="support"), requested_by=user)
    export = runner.run_claimed(str(start_resource_export(user, user_realm(user.pk), user_realm(user.pk)).pk))
    url, bearer = f"/api/jobs/{export.pk}/file", {"Authorization": f"Bearer {api_key(user)}"}
    before = client.get(url, headers=bearer).status_code

    user.memberships.all().delete()
    refused = client.get(url, headers=bearer)

    assert (export.result["ownerIds"], before, refused.status_code) == (["support"], 200, 403)
    assert refused.json()["error"] == "This needs the Viewer role in support. Start a new export."


@pytest.mark.django_db
def test_a_key_that_can_only_read_cannot_download_an_export(client, user, realm):
    export = runner.run_claimed(str(start_resource_export(user, realm, "alice").pk))
    bearer = {"Authorization": f"Bearer {api_key(user, 'viewer')}"}

    refused = client.get(f"/api/jobs/{export.pk}/file", headers=bearer)

    assert (refused.status_code, "This API key can only read." in refused.json()["error"]) == (403, True)


@pytest.mark.django_db(transaction=True)
def test_a_file_that_is_attached_during_the_deletion_does_not_stop_it(user, realm, monkeypatch):
    job = start_resource_export(user, realm, "alice")
    ends, workers = [], []

    def attach():
        try:
            ends.append(limits.attach_file(job, user, "x.jsonl", 1))
        except LeaseLost as error:
            ends.append(error)
        finally:
            connections.close_all()

    def collect_then_attach(collector, rows, *args, **kwargs):
        collect(collector, rows, *args, **kwargs)
        if not workers and [*rows] == [job]:
            workers.append(threading.Thread(target=attach))
            workers[0].start()
            workers[0].join(WAIT)

    collect = Collector.collect
    monkeypatch.setattr(Collector, "collect", collect_then_attach)

    forgetting.delete_exports(realm, "alice")
    workers[0].join()

    assert [type(end) for end in ends] == [LeaseLost]
    assert not Job.objects.exists()
    assert not JobFile.objects.exists()
