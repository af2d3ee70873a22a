"""Answers of runs whose callers lose access while the run works, or before they repeat a call."""

import pytest
from django.contrib.auth.models import User

from access_app.models import ApiKey, Membership
from agents_app.models import Agent
from agents_app.registry import tool
from runs_app.events import stream_access
from runs_app.models import AgentRun, PendingCall
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.runs import DEMO, wait_for_end

pytestmark = pytest.mark.usefixtures("idle_engine")

PATH = "/api/agents/concierge/generate"
ASK = {"messages": "Use change-rights and word-count {}"}
VIEWER_HINT = "This needs the Viewer role in support. Read the answer with GET /api/runs/{}."
EDITOR_HINT = "This needs the Editor role in support. Read the answer with GET /api/runs/{}."


@pytest.fixture
def user(monkeypatch):
    monkeypatch.setattr(stream_access, "ACCESS_CHECK_INTERVAL", 0)
    return member("editor", "support")


@pytest.fixture
def editor(user):
    return Caller(api_key(user))


def agent_that_calls(change):
    """Return an agent with a tool that changes the rights of the caller during the run."""

    @tool("change-rights")
    def change_rights() -> str:
        """Change the rights of the caller."""
        change()
        return "changed"

    return AgentFactory(id="concierge", owner_id="support", model=DEMO, tools=["change-rights", "word-count"])


def lose_key():
    ApiKey.objects.get().revoke()


def lose_account():
    User.objects.update(is_active=False)


def lose_membership():
    Membership.objects.all().delete()


@pytest.mark.parametrize("lose", [lose_key, lose_account])
def test_a_key_that_is_invalid_by_then_gets_no_answer(lose, editor):
    agent_that_calls(lose)

    answer = editor.post(PATH, ASK)

    run = AgentRun.objects.get()
    assert (answer.status_code, answer.body["code"]) == (401, "unauthorized")
    assert (answer.headers["X-Run-ID"], run.status) == (str(run.pk), "succeeded")


def test_a_caller_who_left_the_team_gets_no_calls_of_tools(editor):
    agent_that_calls(lose_membership)

    answer = editor.post(PATH, ASK)

    run = AgentRun.objects.get()
    assert (answer.status_code, answer.body["error"]) == (403, VIEWER_HINT.format(run.pk))
    assert editor.get(f"/api/runs/{run.pk}").body["output"] == run.output


def test_a_person_who_left_the_team_after_an_approval_gets_no_calls_of_tools(editor):
    agent_that_calls(lose_membership)
    waiting = editor.post(PATH, {**ASK, "requireToolApproval": ["change-rights"]}).body
    body = {"runId": waiting["runId"], "toolCallId": PendingCall.objects.get().call_id}

    answer = editor.post("/api/agents/concierge/approve-tool-call-generate", body)

    assert (answer.status_code, answer.body["error"]) == (403, VIEWER_HINT.format(waiting["runId"]))


@pytest.mark.parametrize("door", ["generate", "stream"])
def test_a_repeat_needs_the_role_in_the_team_of_the_run(door, user, editor):
    agent_that_calls(lambda: None)
    path = f"/api/agents/concierge/{door}"
    first = editor.client.post(path, ASK, "application/json", headers={"Idempotency-Key": "a"})
    run_id = str(wait_for_end(AgentRun.objects.get()).pk)
    first.close()
    user.memberships.create(owner_id="billing", role="editor")
    Agent.objects.filter(pk="concierge").update(owner_id="billing")
    user.memberships.filter(owner_id="support").delete()

    repeated = editor.post(path, ASK, Idempotency_Key="a")

    assert (repeated.status_code, repeated.body["error"]) == (403, EDITOR_HINT.format(run_id))
