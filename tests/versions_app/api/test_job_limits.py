"""The limits of each user: unfinished jobs, and the size of files and reports."""

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from access_app.role import Role
from jobs_app.files import file_storage, stored_names
from jobs_app.limits import used_bytes
from jobs_app.models import Job, JobFile, lease_duration
from jobs_app.runner import enqueue, run_claimed
from tests.agent_exchange import EXPORT, IMPORT, export, import_file, import_records, record
from tests.api_client import Caller
from tests.concurrently import run_concurrently
from tests.factories import api_key, member


def start_imports(caller, count, **headers):
    return [import_records(caller, [record(f"a{number}")], **headers) for number in range(count)]


def test_a_user_has_a_limit_of_unfinished_jobs(api, stranger, settings):
    settings.JOBS_PER_USER = 2

    started = start_imports(api, 3)
    exported = api.post(EXPORT)

    assert [answer.status_code for answer in started] == [202, 202, 429]
    assert (exported.status_code, exported.body["code"]) == (429, "too_many_jobs")
    assert exported.body["error"] == (
        "You have reached the limit of 2 unfinished jobs. Wait until one ends, or delete one that has not started."
    )
    assert int(exported.headers["Retry-After"]) > 0
    assert Job.objects.count() == JobFile.objects.count() == 2
    assert stranger.post(EXPORT).status_code == 202


def test_finished_jobs_and_scores_do_not_count(api, settings):
    settings.JOBS_PER_USER = 1
    user = User.objects.get(username="penny")
    enqueue("score_run", requested_by=user)

    import_file(api, [record("a")])

    assert api.post(EXPORT).status_code == 202


def test_a_deleted_queued_job_makes_room(api, settings):
    settings.JOBS_PER_USER = 1
    [started] = start_imports(api, 1)

    assert api.delete(f"/api/jobs/{started.body['id']}").body["success"] is True

    assert api.post(EXPORT).status_code == 202
    assert api.get(f"/api/jobs/{started.body['id']}").status_code == 404


def test_a_repeated_import_is_answered_at_the_limit(api, settings):
    settings.JOBS_PER_USER = 1
    first = import_records(api, [record("a")], Idempotency_Key="k")

    again = import_records(api, [record("a")], Idempotency_Key="k")
    other = import_records(api, [record("b")], Idempotency_Key="l")

    assert (again.status_code, again.body["id"]) == (202, first.body["id"])
    assert other.status_code == 429
    assert Job.objects.count() == JobFile.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_concurrent_requests_do_not_exceed_the_limit(settings):
    settings.JOBS_PER_USER = 3
    key = api_key(member("publisher"))

    answers = run_concurrently(
        [lambda number=number: import_records(Caller(key), [record(f"a{number}")]) for number in range(12)]
    )

    assert sorted(answer.status_code for answer in answers) == [202] * 3 + [429] * 9
    assert Job.objects.count() == JobFile.objects.count() == 3


# --- Files


def test_a_user_has_a_quota_of_files(api, stranger, settings):
    api.create("a", instructions="x" * 2000)
    job = export(api)[1]
    settings.JOB_FILES_PER_USER = JobFile.objects.get().size
    api.create("b")

    refused = api.post(EXPORT)
    uploaded = import_records(api, [record("c")])
    deleted = api.delete(f"/api/jobs/{job['id']}")

    assert (refused.status_code, refused.body["code"]) == (429, "file_quota_exceeded")
    assert refused.body["error"].endswith("Delete some that you no longer need.")
    assert "Retry-After" not in refused.headers
    assert uploaded.status_code == 429
    assert deleted.status_code == 200
    assert stranger.post(EXPORT).status_code == api.post(EXPORT).status_code == 202


def test_an_upload_that_does_not_fit_into_the_quota_is_refused(api, settings):
    settings.JOB_FILES_PER_USER = 5000

    assert import_records(api, [record("a", instructions="x" * 6000)]).body["code"] == "file_quota_exceeded"
    assert import_records(api, [record("a", instructions="x" * 2000)]).status_code == 202
    assert JobFile.objects.count() == Job.objects.count() == 1


def test_an_export_that_does_not_fit_into_the_quota_fails(api, settings):
    settings.JOB_FILES_PER_USER = 5000
    api.create("a", instructions="x" * 6000)
    started = api.post(EXPORT).body["id"]

    run_claimed(started)
    job = api.get(f"/api/jobs/{started}").body

    assert (job["state"], job["result"]) == ("failed", None)
    assert job["error"].startswith("Your exports, imports and their reports may have")
    assert not JobFile.objects.exists()


def test_reports_count_against_the_quota(api, settings):
    result = import_file(api, [record("a"), {"id": "b"}])
    user = User.objects.get(username="penny")
    settings.JOB_FILES_PER_USER = used_bytes(user)

    assert result["listed"] == 2
    assert used_bytes(user) > 0
    assert api.post(EXPORT).status_code == 429


# --- Listing and deleting


def test_jobs_are_listed_with_their_sizes_and_without_results(api, stranger, django_assert_num_queries):
    api.create("a")
    content, exported = export(api)
    import_file(api, [record("b")])
    stranger.post(EXPORT)

    with django_assert_num_queries(3):  # the key, the jobs and their number
        body = api.get("/api/jobs?perPage=1").body
    filtered = api.get("/api/jobs?kind=export_agents").body

    assert (body["total"], len(body["jobs"]), body["hasMore"]) == (2, 1, True)
    assert [job["id"] for job in filtered["jobs"]] == [exported["id"]]
    assert filtered["jobs"][0]["fileBytes"] == len(content)
    assert "result" not in filtered["jobs"][0]


def test_an_unknown_parameter_of_the_list_is_a_warning_or_refused(api):
    [warning] = api.get("/api/jobs?kinds=export_agents").body["warnings"]
    refused = api.get("/api/jobs?kinds=export_agents&strict=true")

    assert (warning["field"], refused.status_code) == ("kinds", 400)
    assert refused.body["issues"] == [{"field": "kinds", "message": warning["message"]}]


def test_a_running_job_cannot_be_deleted(api):
    [started] = start_imports(api, 1)
    Job.objects.update(state="running", lease_until=timezone.now() + lease_duration())

    refused = api.delete(f"/api/jobs/{started.body['id']}")
    Job.objects.update(lease_until=timezone.now() - lease_duration())  # the worker died

    assert (refused.status_code, refused.body["code"]) == (409, "job_running")
    assert api.delete(f"/api/jobs/{started.body['id']}").status_code == 200


@pytest.mark.parametrize("kind", ["run_experiment", "forget_resource", "index_document"])
def test_a_job_for_which_something_waits_cannot_be_deleted_before_its_end(api, kind):
    job = enqueue(kind, requested_by=User.objects.get(username="penny"))

    refused = api.delete(f"/api/jobs/{job.pk}")
    Job.objects.update(state="failed")

    assert (refused.status_code, refused.body["code"]) == (409, "job_needed")
    assert "Cancel what started it" in refused.body["error"]
    assert api.delete(f"/api/jobs/{job.pk}").status_code == 200


def test_a_key_for_reading_deletes_only_exports_that_such_a_key_started():
    user = member("publisher")
    api, reader = Caller(api_key(user)), Caller(api_key(user, Role.VIEWER))
    own, exported = reader.post(EXPORT).body, export(api)[1]
    [started] = start_imports(api, 1)

    answers = [reader.delete(f"/api/jobs/{job['id']}") for job in (started.body, exported)]

    assert [(answer.status_code, answer.body["code"]) for answer in answers] == [(403, "forbidden")] * 2
    assert reader.delete(f"/api/jobs/{own['id']}").status_code == 200
    assert api.delete(f"/api/jobs/{started.body['id']}").status_code == 200


def test_a_job_of_another_user_cannot_be_deleted(api, stranger):
    [started] = start_imports(api, 1)

    assert stranger.delete(f"/api/jobs/{started.body['id']}").status_code == 404
    assert Job.objects.exists()


def test_an_upload_over_the_limit_leaves_no_file(api, settings):
    settings.JOBS_PER_USER = 1
    start_imports(api, 1)
    before = stored_names(file_storage())

    assert api.client.post(IMPORT, b"{}", content_type="application/x-ndjson").status_code == 429
    assert stored_names(file_storage()) == before
