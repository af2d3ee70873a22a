"""Runs in metrics and in Django admin."""

import subprocess
import sys

import pytest
from django.urls import reverse

from agentcms.server.processes import PROJECT
from runs_app.models import AgentRun
from tests.agentcms.observability.test_metrics import read_metric
from tests.factories import AgentFactory, UserFactory, member
from tests.runs import DEMO, LONG, SLOW, start_run, wait_for_end, wait_for_text


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
