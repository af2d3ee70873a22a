"""People, versions and agents that go away while a run waits: who may still decide, and what every route answers."""

import json
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.urls import reverse
from django.utils import timezone

from agents_app.models import Agent
from runs_app.engine import reaper
from runs_app.models import AgentRun, PendingCall
from tests.api_client import Caller
from tests.durable.decisions import wait_for_suspension
from tests.durable.test_approval import PLAN
from tests.durable.test_journal import notes
from tests.factories import AgentFactory, api_key, member
from tests.page_client import browser
from tests.runs import start_run, wait_for_end

pytestmark = pytest.mark.usefixtures("idle_engine", "planned")

TEAM = "shop"
DECISIONS = {
    "approve-tool-call": {},
    "decline-tool-call": {},
    "approve-tool-call-generate": {},
    "decline-tool-call-generate": {},
    "approve-network-tool-call": {},
    "decline-network-tool-call": {},
    "resume-stream": {"resumeData": {"approved": True}},
    "resume-network": {"resumeData": {"approved": True}},
}


@pytest.fixture
def waiting():
    """Return a run that waits for approval, its call, who asked for it, and a publisher of the team."""
    asker, publisher = member("editor", TEAM), member("publisher", TEAM)
    model = {"provider": "planned", "name": "plan", "plan": PLAN}
    agent = AgentFactory(id="refunds", owner_id=TEAM, model=model, tools=["refund"])
    run = wait_for_suspension(start_run(agent, asker, "Refund this.", options={"durable": True}))
    return SimpleNamespace(run=run, call=PendingCall.objects.get(), asker=asker, publisher=publisher)


def try_all_routes(user, waiting):
    """Try to decide the call in every way. Return the status codes by route."""
    caller, pages = Caller(api_key(user)), browser(user)
    body = {"runId": str(waiting.run.pk)}
    codes = {
        route: caller.client.post(
            f"/api/agents/refunds/{route}", {**body, **more}, content_type="application/json"
        ).status_code
        for route, more in DECISIONS.items()
    }
    codes["approval"] = caller.post(f"/api/approvals/{waiting.call.pk}", {"decision": "approve"}).status_code
    form = {"verdict": "approve", f"call-{waiting.call.pk}-mark": waiting.call.mark}
    codes["page"] = pages.post(reverse("runs:decide", args=[waiting.call.pk]), form).status_code
    return codes


def approve(user, waiting):
    """Approve the call by the API and return the end of the run."""
    answer = Caller(api_key(user)).post(f"/api/approvals/{waiting.call.pk}", {"decision": "approve"})
    assert (answer.status_code, answer.body["state"]) == (200, "approved")
    return wait_for_end(waiting.run)


def page_codes(user, *paths):
    pages = browser(user)
    return [pages.get(path).status_code for path in paths]


def test_a_member_who_left_decides_nothing_and_the_team_does(planned, waiting):
    waiting.asker.memberships.all().delete()

    codes = try_all_routes(waiting.asker, waiting)

    assert set(codes.values()) <= {403, 404}, codes
    caller = Caller(api_key(waiting.asker))
    assert caller.get("/api/approvals").body["total"] == 0
    assert caller.get(f"/api/runs/{waiting.run.pk}").body["status"] == "suspended"  # their own run
    assert page_codes(waiting.asker, "/approvals", f"/runs/{waiting.run.pk}") == [200, 200]
    assert page_codes(waiting.asker, f"/approvals/{waiting.call.pk}") == [404]

    done = approve(waiting.publisher, waiting)

    assert (done.status, done.output) == ("succeeded", "Done.")
    assert len(notes(planned, "refund")) == 1


@pytest.mark.parametrize("departure", ["deleted", "deactivated"])
def test_the_run_of_a_user_who_is_gone_is_decided_by_the_team(planned, waiting, departure):
    if departure == "deleted":
        waiting.asker.delete()
    else:
        type(waiting.asker).objects.filter(pk=waiting.asker.pk).update(is_active=False)

    paths = ("/approvals", f"/approvals/{waiting.call.pk}", f"/runs/{waiting.run.pk}", "/approvals/count")
    assert page_codes(waiting.publisher, *paths) == [200] * 4
    done = approve(waiting.publisher, waiting)

    assert (done.status, done.output) == ("succeeded", "Done.")
    assert len(notes(planned, "refund")) == 1


def test_a_run_whose_whole_team_is_gone_ends_by_expiry(planned, waiting):
    for user in (waiting.asker, waiting.publisher):
        user.delete()
    # Not now: the clock of SQLite counts whole milliseconds, and may be behind.
    past = timezone.now() - timedelta(seconds=1)
    PendingCall.objects.update(expires_at=past)
    AgentRun.objects.update(expires_at=past)

    reaper.reap_once()

    assert wait_for_end(waiting.run).status == "succeeded"
    assert notes(planned, "refund") == []
    waiting.call.refresh_from_db()
    assert (waiting.call.state, waiting.call.decided_by) == ("expired", None)


def test_a_role_that_shrinks_while_a_run_waits_no_longer_decides(waiting):
    waiting.asker.memberships.update(role="viewer")

    codes = try_all_routes(waiting.asker, waiting)

    assert set(codes.values()) == {403}, codes
    assert page_codes(waiting.asker, "/approvals", f"/approvals/{waiting.call.pk}") == [200, 200]
    assert approve(waiting.publisher, waiting).status == "succeeded"


@pytest.mark.parametrize("user_name", ["asker", "publisher"])
def test_the_calls_of_a_deleted_agent_are_cancelled_and_refuse_decisions(planned, waiting, user_name):
    user = getattr(waiting, user_name)
    Agent.objects.get(pk="refunds").delete()

    codes = try_all_routes(user, waiting)

    assert {*codes.values()} <= {302, 404, 409}, codes
    assert (codes["approval"], codes["approve-tool-call"]) == (409, 404)
    waiting.call.refresh_from_db()
    assert (waiting.call.state, waiting.call.decided_by) == ("cancelled", None)
    body = Caller(api_key(user)).get("/api/approvals?state=cancelled").body
    assert [call["id"] for call in body["approvals"]] == [str(waiting.call.pk)]
    paths = ("/approvals", "/approvals?tab=decided", f"/approvals/{waiting.call.pk}", f"/runs/{waiting.run.pk}")
    assert page_codes(user, *paths) == [200, 200, 200, 404]
    reaper.reap_once()
    assert notes(planned, "refund") == []


def test_an_archived_agent_finishes_the_run_that_waits(planned, waiting):
    Agent.objects.filter(pk="refunds").update_unguarded(archived_at=timezone.now())

    done = approve(waiting.asker, waiting)

    assert (done.status, done.output) == ("succeeded", "Done.")
    assert len(notes(planned, "refund")) == 1


def test_an_agent_that_moves_to_another_team_leaves_the_call_to_the_team_of_the_run(planned, waiting):
    stranger = member("manager", "other")
    Agent.objects.filter(pk="refunds").update_unguarded(owner_id="other")

    assert set(try_all_routes(stranger, waiting).values()) == {404}
    answer = Caller(api_key(stranger)).get("/api/approvals")
    assert json.dumps(answer.body["approvals"]) == "[]"

    assert approve(waiting.publisher, waiting).status == "succeeded"
