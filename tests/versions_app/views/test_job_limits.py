"""The pages of exports and imports at the limits of a user, and deleting jobs."""

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from django.utils import timezone

from jobs_app.models import Job, JobFile, lease_duration
from tests.factories import AgentFactory
from tests.versions_app.views.test_exchange import EXPORT, IMPORT, LIST, address, checked, file, record, run_job

pytestmark = pytest.mark.django_db


def test_an_export_over_the_limit_of_jobs_is_refused_on_the_page(viewer, settings):
    settings.JOBS_PER_USER = 1
    Job.objects.create(kind="import_agents", requested_by=User.objects.get())

    answer = viewer.post(EXPORT)

    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "5")
    assert "You have reached the limit of 1 unfinished job." in answer.content.decode()
    assert Job.objects.count() == 1


def test_a_file_over_the_limit_of_jobs_is_refused_on_the_page(publisher, settings):
    settings.JOBS_PER_USER = 1
    publisher.post(IMPORT, {"file": file(record("a"))})

    answer = publisher.post(IMPORT, {"file": file(record("b"))})

    assert answer.status_code == 429
    assert Job.objects.count() == JobFile.objects.count() == 1


def test_a_confirmation_over_the_limit_of_jobs_keeps_the_checked_file(publisher, settings):
    job = checked(publisher, record("a"))
    publisher.post(EXPORT)
    settings.JOBS_PER_USER = 1

    refused = publisher.post(address("confirm", job))
    settings.JOBS_PER_USER = 2

    assert refused.status_code == 429
    assert run_job(publisher.post(address("confirm", job))).result["create"] == 1


def test_a_file_over_the_quota_is_refused_on_the_page(publisher, settings):
    settings.JOB_FILES_PER_USER = 1000

    answer = publisher.post(IMPORT, {"file": file(record("a", instructions="x" * 2000))})

    assert answer.status_code == 429
    assert "Delete some that you no longer need." in answer.content.decode()
    assert not Job.objects.exists()


def test_a_file_over_the_quota_keeps_the_one_that_was_checked_before(publisher, settings):
    job = checked(publisher, record("a"))
    quota, settings.JOB_FILES_PER_USER = settings.JOB_FILES_PER_USER, 1000

    refused = publisher.post(IMPORT, {"file": file(record("b", instructions="x" * 2000))})
    settings.JOB_FILES_PER_USER = quota

    assert refused.status_code == 429
    assert run_job(publisher.post(address("confirm", job))).result["create"] == 1


def test_an_unchanged_export_opens_the_last_one(viewer, agent):
    job = run_job(viewer.post(EXPORT))

    answer = viewer.post(EXPORT, follow=True)

    assert answer.redirect_chain[0][0] == address("job", job)
    assert "Nothing has changed since this export." in answer.content.decode()
    assert Job.objects.count() == 1


def test_a_job_is_deleted_with_its_file(viewer, agent, django_capture_on_commit_callbacks):
    job = run_job(viewer.post(EXPORT))
    delete = reverse("exchange:delete", args=[job.pk])

    assert delete in viewer.get(LIST).content.decode()
    with django_capture_on_commit_callbacks(execute=True):
        answer = viewer.post(delete, follow=True)

    assert "Export of agents: deleted." in answer.content.decode()
    assert not Job.objects.exists()


def test_deleting_a_job_asks_first(viewer, agent):
    job = run_job(viewer.post(EXPORT))
    row = viewer.get(LIST).content.decode()

    page = viewer.get(address("delete", job)).content.decode()

    assert f'hx-get="{address("delete", job)}"' in row
    assert f'action="{address("delete", job)}"' not in row
    assert "Delete “Export of agents”?" in page
    assert "Agents stay as they are. This cannot be undone." in page
    assert Job.objects.exists()


def test_a_deletion_in_the_dialog_reloads_the_list(viewer, agent):
    job = run_job(viewer.post(EXPORT))

    answer = viewer.post(address("delete", job), headers={"HX-Request": "true"})

    assert answer.headers["HX-Redirect"] == LIST
    assert not Job.objects.exists()


def test_a_running_job_is_not_deleted(viewer):
    job = Job.objects.create(
        kind="export_agents",
        state="running",
        requested_by=User.objects.get(),
        lease_until=timezone.now() + lease_duration(),
    )

    refused = viewer.post(address("delete", job))

    assert address("delete", job) not in viewer.get(LIST).content.decode()
    assert refused.status_code == 409
    assert "A worker runs this job. Delete it after it has finished." in refused.content.decode()
    assert Job.objects.exists()


def test_the_list_shows_the_used_part_of_the_quota(viewer, settings):
    settings.JOB_FILES_PER_USER = 10 << 20
    AgentFactory(instructions="x" * (2 << 20))
    run_job(viewer.post(EXPORT))

    assert "2.0\N{NO-BREAK SPACE}MB of 10.0\N{NO-BREAK SPACE}MB" in viewer.get(LIST).content.decode()
