"""Permissions to run agents and to read, stream and cancel runs."""

import json

import pytest

from runs_app.models import AgentRun
from tests.api_client import Caller
from tests.factories import AgentFactory, UserFactory, api_key, member
from tests.runs import DEMO, LONG, SLOW, start_run, wait_for_end, wait_for_text

pytestmark = pytest.mark.usefixtures("idle_engine")

ASK = {"messages": "Hello"}
# Actions on a run, and the role that they need for runs of other users.
READS = [("GET", ""), ("GET", "/events"), ("GET", "/stream"), ("POST", "/cancel")]


@pytest.fixture
def agent():
    return AgentFactory(id="concierge", model=DEMO)


def status(caller, method, path, body=None):
    content = b"" if body is None else json.dumps(body).encode()
    answer = caller.client.generic(method, path, content, content_type="application/json")
    if answer.streaming:
        b"".join(answer.streaming_content)
    return answer.status_code


@pytest.mark.parametrize(
    ("role", "expected"), [("viewer", 403), ("editor", 200), ("publisher", 200), ("manager", 200)]
)
def test_running_an_agent_needs_the_editor_role(agent, role, expected):
    caller = Caller(api_key(member(role)))

    assert status(caller, "POST", "/api/agents/concierge/generate", ASK) == expected
    assert status(caller, "POST", "/api/agents/concierge/stream", ASK) == expected
    assert AgentRun.objects.count() == (2 if expected == 200 else 0)
    assert status(caller, "GET", "/api/agents/concierge") == 200
    assert status(caller, "GET", "/api/agents/providers") == 200


def test_a_viewer_key_cannot_run_agents(agent):
    caller = Caller(api_key(member("manager"), "viewer"))

    answer = caller.post("/api/agents/concierge/generate", ASK)

    assert (answer.status_code, "Editor role" in answer.body["error"]) == (403, True)


def test_a_user_of_another_owner_finds_neither_agent_nor_run(agent):
    run = wait_for_end(start_run(agent, member("editor")))
    stranger = Caller(api_key(member("manager", "elsewhere")))

    assert stranger.get("/api/agents/concierge").status_code == 404
    assert "concierge" not in stranger.get("/api/agents").body
    for act in ("generate", "stream"):
        answer = stranger.post(f"/api/agents/concierge/{act}", ASK)
        assert (answer.status_code, answer.body["error"]) == (404, "Stored agent with id concierge not found")
    for method, rest in READS:
        answer = stranger.call(method, f"/api/runs/{run.pk}{rest}")
        assert (answer.status_code, answer.body["error"]) == (404, f"Run with id {run.pk} not found")
    assert stranger.post("/api/agents/concierge/observe", {"runId": str(run.pk)}).status_code == 404
    assert stranger.get("/api/runs").body["total"] == 0
    assert AgentRun.objects.count() == 1


def test_a_run_is_read_by_its_user_and_by_publishers(agent):
    asker = member("editor")
    run = wait_for_end(start_run(agent, asker))
    callers = {
        "who asked": (asker, 200),
        "a publisher": (member("publisher"), 200),
        "a superuser": (UserFactory(is_superuser=True), 200),
        "another editor": (member("editor"), 404),
        "a viewer": (member("viewer"), 404),
    }

    for name, (user, expected) in callers.items():
        caller = Caller(api_key(user))
        for method, rest in READS:
            assert (name, status(caller, method, f"/api/runs/{run.pk}{rest}")) == (name, expected)
        assert caller.get("/api/runs").body["total"] == (1 if expected == 200 else 0)


@pytest.mark.parametrize("role", ["viewer", None])
def test_a_former_editor_can_cancel_the_own_run(role):
    asker = member("editor")
    run = wait_for_text(start_run(AgentFactory(model=SLOW), asker, LONG))
    asker.memberships.update(role=role) if role else asker.memberships.all().delete()

    answer = Caller(api_key(asker)).post(f"/api/runs/{run.pk}/cancel")

    assert (answer.status_code, answer.body["id"]) == (200, str(run.pk))
    assert wait_for_end(run).status == "cancelled"


def test_a_viewer_key_cannot_cancel_runs(agent):
    asker = member("editor")
    run = wait_for_end(start_run(agent, asker))

    answer = Caller(api_key(asker, "viewer")).post(f"/api/runs/{run.pk}/cancel")

    assert (answer.status_code, "Editor role" in answer.body["error"]) == (403, True)


def test_the_run_of_a_sub_agent_hides_what_its_user_may_not_see(agent):
    AgentFactory(id="ours", owner_id="acme", model=DEMO, agents=["concierge", "proofreader"])
    caller = Caller(api_key(member("editor", "acme")))

    caller.post("/api/agents/ours/generate", {"messages": "Use agent-concierge and agent-proofreader"})

    configurations = {
        run.agent_key: caller.get(f"/api/runs/{run.pk}").body["configuration"] for run in AgentRun.objects.all()
    }
    assert caller.get("/api/stored/agents/concierge").status_code == 404
    assert configurations["concierge"] is None
    assert configurations["ours"]["name"] == "Concierge"
    assert configurations["proofreader"]["instructions"]  # agents in code are visible to all users


def test_an_idempotency_key_of_another_user_creates_another_run(agent):
    for user in (member("editor"), member("editor")):
        Caller(api_key(user)).post("/api/agents/concierge/generate", ASK, Idempotency_Key="a")

    assert AgentRun.objects.count() == 2
