"""Runs in metrics and in Django admin."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from agentcms.server.processes import PROJECT
from runs_app.engine import reaper
from runs_app.models import AgentRun, RunStep
from tests.agentcms.observability.test_metrics import read_metric
from tests.factories import AgentFactory, UserFactory, member
from tests.runs import DEMO, LONG, SLOW, start_run, wait_for_end, wait_for_text
from tests.runs_app.background.test_api import task_of
from tests.runs_app.factories import PendingCallFactory, RunFactory


@pytest.fixture
def staff(client, db):
    client.force_login(UserFactory(is_staff=True, is_superuser=True))
    return client


@pytest.mark.usefixtures("idle_engine")
def test_runs_are_counted_when_finished(staff):
    before = {
        status: read_metric(staff, "agentcms_runs_ended_total", status=status) for status in ("succeeded", "failed")
    }
    editor = member("editor")

    wait_for_end(start_run(AgentFactory(model=DEMO), editor))
    wait_for_end(start_run(AgentFactory(model={"provider": "nobody", "name": "nothing"}), editor))
    wait_for_text(start_run(AgentFactory(model=SLOW), editor, LONG))

    assert read_metric(staff, "agentcms_runs_ended_total", status="succeeded") == before["succeeded"] + 1
    assert read_metric(staff, "agentcms_runs_ended_total", status="failed") == before["failed"] + 1
    assert read_metric(staff, "agentcms_runs_open", status="running") == 1


@pytest.mark.django_db
def test_staff_read_runs_of_owners_they_publish_for(client):
    agent, theirs = AgentFactory(), AgentFactory(owner_id="them")
    for owned, owner in ((agent, ""), (theirs, "them")):
        messages = {"messages": [{"role": "user", "content": [{"type": "text", "text": f"Hello {owner}<b>"}]}]}
        columns = {"configuration": {}, "input": messages, "owner_id": owner}
        AgentRun.objects.create(agent=owned, agent_key=owned.pk, **columns)
    client.force_login(member("publisher", is_staff=True))

    listed = client.get(reverse("admin:runs_app_agentrun_changelist")).content.decode()
    run, other = AgentRun.objects.get(agent=agent), AgentRun.objects.get(agent=theirs)
    page = client.get(reverse("admin:runs_app_agentrun_change", args=[run.pk]))

    assert agent.pk in listed
    assert theirs.pk not in listed
    assert "Hello &lt;b&gt;" in page.content.decode()
    assert client.get(reverse("admin:runs_app_agentrun_change", args=[other.pk])).status_code == 302
    assert client.get(reverse("admin:runs_app_agentrun_add")).status_code == 403
    assert client.post(reverse("admin:runs_app_agentrun_delete", args=[run.pk])).status_code == 403


def test_the_server_starts_without_loading_model_libraries():
    heavy = ("pydantic_ai", "openai", "anthropic", "google.genai")
    script = f"import sys, agentcms.wsgi, agentcms.urls; print([name for name in {heavy} if name in sys.modules])"

    done = subprocess.run([sys.executable, "-c", script], cwd=PROJECT, capture_output=True, text=True, timeout=60)

    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr


def run_action(client, name, *runs, **fields):
    data = {"action": name, "_selected_action": [run.pk for run in runs], **fields}
    return client.post(reverse("admin:runs_app_agentrun_changelist"), data, follow=True).content.decode()


@pytest.mark.django_db
def test_staff_have_a_queued_durable_run_carried_on(staff, monkeypatch):
    dispatched = []
    runner = SimpleNamespace(dispatch=lambda run_id: dispatched.append(run_id) or True)
    monkeypatch.setattr(reaper, "get_runner", lambda: runner)
    queued = RunFactory(open=True, status="queued", is_durable=True)
    lost = RunFactory(open=True, is_durable=True, lease_until=timezone.now() - timedelta(minutes=1))
    finished = RunFactory(is_durable=True)

    page = run_action(staff, "continue_now", queued, lost, finished)

    assert {*dispatched} == {queued.pk, lost.pk}
    assert "2 of 3 runs sent to a process. Only durable runs" in page
    lost.refresh_from_db()
    assert lost.status == "queued"


@pytest.mark.django_db
def test_staff_stop_runs_after_a_confirmation(staff):
    waiting, finished = RunFactory(open=True), RunFactory()

    question = run_action(staff, "stop", waiting, finished)
    before = AgentRun.objects.get(pk=waiting.pk).cancel_requested_at
    done = run_action(staff, "stop", waiting, finished, confirmed="Stop")

    assert "Stop 1 run?" in question
    assert before is None
    assert "1 run asked to stop." in done
    assert [*LogEntry.objects.values_list("object_id", "change_message")] == [(str(waiting.pk), "Stopped.")]
    assert AgentRun.objects.get(pk=waiting.pk).cancel_requested_at is not None


@pytest.mark.django_db
def test_the_steps_of_a_run_are_shown(staff):
    run = RunFactory(is_durable=True)
    RunStep.objects.create(run=run, key="0/t/call-1", kind="tool", name="refund", state="done", result={"a": "<b>"})

    page = staff.get(reverse("admin:runs_app_agentrun_change", args=[run.pk])).content.decode()

    assert "0/t/call-1" in page
    assert "&lt;b&gt;" in page


@pytest.mark.django_db
def test_approvals_are_found_and_only_read(staff):
    call = PendingCallFactory(state="declined", decided_by_name="maya", reason="Not without a receipt.")
    PendingCallFactory()
    changelist = reverse("admin:runs_app_pendingcall_changelist")

    matches = staff.get(f"{changelist}?q=receipt").content.decode()
    filtered = staff.get(f"{changelist}?state__exact=declined").content.decode()
    page = staff.get(reverse("admin:runs_app_pendingcall_change", args=[call.pk])).content.decode()

    assert "1 approval" in matches
    assert "1 approval" in filtered
    assert "Not without a receipt." in page
    assert staff.post(reverse("admin:runs_app_pendingcall_delete", args=[call.pk])).status_code == 403


@pytest.mark.django_db
def test_staff_of_other_teams_see_no_approvals(client):
    PendingCallFactory()
    client.force_login(member("publisher", "elsewhere", is_staff=True))

    assert "0 approvals" in client.get(reverse("admin:runs_app_pendingcall_changelist")).content.decode()


@pytest.mark.django_db
def test_lists_have_short_dates(staff):
    RunFactory(agent=AgentFactory(), created_at=datetime(2026, 11, 5, tzinfo=UTC))

    page = staff.get(reverse("admin:runs_app_agentrun_changelist")).content.decode()

    assert "5 Nov 2026, 00:00" in page


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("model", "large_columns"),
    [
        ("agentrun", {"input", "output", "conversation", "configuration", "warnings"}),
        ("pendingcall", {"arguments", "payload", "edited_arguments", "resume_data"}),
        ("backgroundtask", {"arguments", "result"}),
    ],
)
def test_lists_read_no_large_columns(staff, model, large_columns):
    call = PendingCallFactory(state="approved")
    task_of(call.run)

    with CaptureQueriesContext(connection) as queries:
        page = staff.get(reverse(f"admin:runs_app_{model}_changelist"))

    read = [query["sql"] for query in queries if f'FROM "runs_app_{model}"' in query["sql"]]
    assert len(page.context["cl"].result_list) == 1
    assert read
    assert not [column for column in large_columns for sql in read if f'"runs_app_{model}"."{column}"' in sql]


@pytest.mark.django_db
def test_a_run_of_the_shared_space_says_so(staff):
    run = RunFactory(agent=AgentFactory(), owner_id="", agent_owner_id="")

    page = staff.get(reverse("admin:runs_app_agentrun_change", args=[run.pk])).content.decode()

    assert page.count('<div class="readonly">Shared</div>') == 2
