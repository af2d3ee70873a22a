"""Jobs in Django admin: progress, results, filters and starting."""

import os
import subprocess
import sys
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from agentcms.server.processes import PROJECT
from jobs_app import runner
from jobs_app.models import Job
from tests.factories import AgentFactory, UserFactory, member

pytestmark = pytest.mark.django_db

LIST, AGENTS = "/admin/jobs_app/job/", "/admin/agents_app/agent/"


@pytest.fixture
def superuser(client):
    user = UserFactory(is_staff=True, is_superuser=True)
    client.force_login(user)
    return user


# What a web process imports knows the titles that workers know.
TITLES_OF_WEB_PROCESS = """
import django; django.setup()
import agentcms.urls
from jobs_app.kinds import kind_titles
titles = kind_titles()
import runs_app.tasks
from jobs_app import runner
print({kind for kind in runner._handlers if kind not in dict(titles)} or "none is missing")
"""


def start(client, name):
    return client.post(reverse("admin:jobs_app_job_start", args=[name]))


def test_a_web_process_knows_the_titles_of_all_kinds():
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}

    done = subprocess.run(
        [sys.executable, "-c", TITLES_OF_WEB_PROCESS],
        env=environment,
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert done.stdout == "none is missing\n", done.stderr


def test_parameters_are_listed_in_words(client, superuser):
    job = Job.objects.create(kind="index_messages", parameters={"threadId": 7, "embedder": "local/multilingual"})

    page = client.get(reverse("admin:jobs_app_job_change", args=[job.pk])).content.decode()

    assert "<dt>Thread id</dt><dd><p>7</p></dd>" in page
    assert "{&quot;" not in page


def test_a_superuser_starts_a_dry_run_of_pruning_and_reads_its_result(client, superuser, settings):
    settings.AGENT_VERSION_LIMIT = 5
    agent = AgentFactory(id="porter")
    for number in range(4):
        agent.edit({"name": f"Edit {number}"})
    settings.AGENT_VERSION_LIMIT = 3

    answer = start(client, "prune-dry-run")
    runner.run_claimed(str(Job.objects.get().pk))
    page = client.get(answer.headers["Location"]).content.decode()

    assert Job.objects.get().requested_by == superuser
    assert "<td>porter</td><td>1</td>" in page
    assert agent.versions.count() == 5


def test_every_offered_job_has_a_button_and_runs(client, superuser):
    page = client.get(LIST).content.decode()

    for name in runner.offered_jobs:
        assert reverse("admin:jobs_app_job_start", args=[name]) in page
        start(client, name)
    done = [runner.run_claimed(str(job.pk)) for job in Job.objects.all()]
    assert {job.state for job in done} == {"done"}


def test_selected_agents_are_exported_and_downloaded(client, superuser):
    AgentFactory(id="porter")
    assert reverse("admin:jobs_app_job_start", args=["export-agents"]) in client.get(AGENTS).content.decode()

    answer = start(client, "export-agents")
    job = runner.run_claimed(str(Job.objects.get().pk))

    assert job.result["file"] in client.get(answer.headers["Location"]).content.decode()
    assert b'"porter"' in b"".join(client.get(job.result["file"]).streaming_content)


def export(client, *chosen):
    return client.post(AGENTS, {"action": "export", "_selected_action": chosen})


def test_staff_export_only_selected_agents_they_can_see(client):
    client.force_login(member("viewer", "north", is_staff=True))
    for agent_id, owner_id in (("porter", "north"), ("clerk", "north"), ("theirs", "south")):
        AgentFactory(id=agent_id, owner_id=owner_id)

    answer = export(client, "porter", "theirs")
    job = runner.run_claimed(str(Job.objects.get().pk))

    assert job.result["records"] == 1
    assert job.result["file"] in client.get(answer.headers["Location"]).content.decode()
    assert b'"porter"' in b"".join(client.get(job.result["file"]).streaming_content)


def test_unchanged_agents_are_exported_once(client, superuser):
    AgentFactory(id="porter")
    export(client, "porter")
    job = runner.run_claimed(str(Job.objects.get().pk))

    again = export(client, "porter")
    all_agents = start(client, "export-agents")

    assert {answer.headers["Location"] for answer in (again, all_agents)} == {
        reverse("admin:jobs_app_job_change", args=[job.pk])
    }


@pytest.mark.parametrize("name", ["prune-dry-run", "export-agents"])
def test_superusers_have_the_limit_of_unfinished_jobs_too(client, superuser, settings, name):
    settings.JOBS_PER_USER = 1
    AgentFactory(id="porter")
    start(client, "check-history")

    refused = start(client, name)
    export(client, "porter")

    page = client.get(refused.headers["Location"]).content.decode()
    assert "You have reached the limit of 1 unfinished job." in page
    assert Job.objects.count() == 1


def test_an_export_of_too_many_selected_agents_is_refused(client, superuser, monkeypatch):
    monkeypatch.setattr("agents_app.editing.bulk.MAX_SELECTED_AGENTS", 1)
    agents = AgentFactory.create_batch(2)

    answer = export(client, *(agent.pk for agent in agents))

    page = client.get(answer.headers["Location"]).content.decode()
    assert "Select at most 1 agents. Or export all agents on their page." in page
    assert Job.objects.count() == 0


def test_only_superusers_start_jobs_by_post(client, superuser):
    assert client.get(reverse("admin:jobs_app_job_start", args=["prune-dry-run"])).status_code == 405
    assert start(client, "drop-everything").status_code == 404

    client.force_login(member("manager", is_staff=True))
    assert start(client, "prune-dry-run").status_code == 403
    assert "Dry run" not in client.get(LIST).content.decode()


def test_progress_is_displayed_as_a_bar(client, superuser):
    Job.objects.create(kind="prune_versions", state="running", done=3, total=4, lease_until="2020-01-01T00:00Z")

    assert '<progress value="3" max="4"></progress> 3 of 4' in client.get(LIST).content.decode()


def test_the_list_filters_late_jobs(client, superuser):
    Job.objects.create(kind="late_one", created_at=timezone.now() - timedelta(hours=1))
    Job.objects.create(kind="new_one")

    page = client.get(f"{LIST}?late=yes").content.decode()

    assert ("1 job" in page, "2 jobs" in page) == (True, False)


def test_a_failed_job_can_be_requeued(client, superuser):
    failed = Job.objects.create(kind="prune_versions", state="failed", error="Gone.")
    done = Job.objects.create(kind="prune_versions", state="done")

    answer = client.post(LIST, {"action": "retry", "_selected_action": [failed.pk, done.pk]}, follow=True)

    assert "1 of 2 jobs queued again. Only failed jobs can be retried." in answer.content.decode()
    assert {job.pk: job.state for job in Job.objects.all()} == {failed.pk: "queued", done.pk: "done"}


def test_jobs_that_wait_or_run_can_be_stopped(client, superuser):
    waiting, running, done = (Job.objects.create(kind="export_agents", state=s) for s in ("queued", "running", "done"))

    answer = client.post(LIST, {"action": "stop", "_selected_action": [waiting.pk, running.pk, done.pk]}, follow=True)

    assert "2 of 3 jobs stopped. Others have ended." in answer.content.decode()
    stopped = Job.objects.filter(state="failed", error=f"{superuser.username} stopped the job.")
    assert {*stopped} == {waiting, running}


def test_staff_retry_their_own_failed_jobs_only(client):
    user = member("manager", is_staff=True)
    own, other = (Job.objects.create(kind="export_agents", state="failed", requested_by=by) for by in (user, None))
    client.force_login(user)

    client.post(LIST, {"action": "retry", "_selected_action": [own.pk, other.pk]})

    assert {job.pk: job.state for job in Job.objects.all()} == {own.pk: "queued", other.pk: "failed"}


def test_markup_in_a_result_is_escaped(client, superuser):
    job = Job.objects.create(kind="x", state="done", result={"faults": [{"message": "<script>"}], "<b>": "<i>"})

    page = client.get(reverse("admin:jobs_app_job_change", args=[job.pk])).content.decode()

    assert "<script></td>" not in page
    assert "&lt;script&gt;" in page
    assert "<i>" not in page


def test_staff_see_only_their_own_jobs(client):
    user = member("manager", is_staff=True)
    Job.objects.create(kind="mine_alone", requested_by=user)
    Job.objects.create(kind="somebody_elses")
    client.force_login(user)

    page = client.get(LIST).content.decode()

    assert "Mine alone" in page
    assert "Somebody elses" not in page


def test_kinds_have_titles(client, superuser):
    job = Job.objects.create(kind="export_agents")
    Job.objects.create(kind="prune_versions")

    listed = client.get(LIST).content.decode()
    filtered = client.get(f"{LIST}?kind=export_agents").content.decode()
    page = client.get(reverse("admin:jobs_app_job_change", args=[job.pk])).content.decode()

    assert "Export of agents</a>" in listed
    assert "Pruning of versions</a>" in listed
    assert '<a href="?kind=export_agents">Export of agents</a>' in listed
    assert filtered.count("Pruning of versions</a>") == 1  # the filter alone
    assert "Export of agents (queued)" in page
    assert "export_agents" not in page
