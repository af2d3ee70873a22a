"""Repeated decisions with an `Idempotency-Key`, of runs that have gone on and wait for another call."""

import pytest

from memory_app.models import Thread
from runs_app.api import decisions
from runs_app.approvals import resuming
from runs_app.models import AgentRun, PendingCall
from tests.runs_app.api.decisions.conftest import GENERATES, STREAMS, AskingAgainRunner, body_for, chunks
from tests.runs_app.factories import PendingCallFactory


@pytest.fixture(autouse=True)
def asking_again(monkeypatch):
    monkeypatch.setattr(resuming, "get_runner", AskingAgainRunner)


def post(caller, route, body, key="key-1"):
    return caller.client.post(
        f"/api/agents/concierge/{route}",
        body,
        content_type="application/json",
        headers={"Idempotency-Key": key},
    )


def states():
    return [*PendingCall.objects.order_by("segment").values_list("state", flat=True)]


@pytest.mark.parametrize("route", [*STREAMS, *GENERATES])
def test_a_repeat_that_names_no_call_leaves_the_next_call_open(editor, run, call, route):
    first, second = (post(editor, route, body_for(route, run)) for _ in range(2))

    if route in STREAMS:
        first, second = chunks(first), chunks(second)
        assert first == second
        assert [chunk["payload"].get("toolCallId") for chunk in first if "approval" in chunk["type"]] == ["call-2"]
    else:
        assert first.json() == second.json()
    assert states()[1:] == ["open"]


def test_a_repeat_by_the_conversation_leaves_the_next_call_with_the_same_id_open(editor, run, call, user):
    thread = Thread.objects.create(user=user, agent_key="concierge", key="t1", resource_key="ann")
    AgentRun.objects.filter(pk=run.pk).update(thread=thread)
    body = {"resourceId": "ann", "threadId": "t1", "toolCallId": "call-1", "approved": True}

    first = post(editor, "send-tool-approval", body)
    PendingCall.objects.filter(segment=1).update(call_id="call-1")
    second = post(editor, "send-tool-approval", body)

    assert first.json() == second.json()
    assert states() == ["approved", "open"]


def test_another_decision_with_the_same_key_is_refused(editor, run, call):
    chunks(post(editor, "approve-tool-call", body_for("", run)))

    for route, body in [
        ("approve-tool-call", body_for("", run, reason="Fine.")),
        ("decline-tool-call", body_for("", run)),
        ("send-tool-approval", {"resourceId": "a", "threadId": "t", "toolCallId": "call-1", "approved": True}),
    ]:
        answer = post(editor, route, body)
        assert (answer.status_code, answer.json()["code"]) == (422, "key_reused")
    assert states() == ["approved", "open"]


def test_a_key_is_stored_with_the_call_that_it_decided_only(editor, run, call):
    PendingCallFactory()

    chunks(post(editor, "approve-tool-call", body_for("", run)))

    assert [*PendingCall.objects.exclude(message_key=None)] == [call]


def test_a_decision_with_another_key_decides_the_next_call(editor, run, call):
    chunks(post(editor, "approve-tool-call", body_for("", run)))

    chunks(post(editor, "approve-tool-call", body_for("", run), key="key-2"))

    assert states()[:2] == ["approved", "approved"]


def test_an_invalid_key_decides_nothing(editor, run, call):
    answer = post(editor, "approve-tool-call", body_for("", run), key="x" * 256)

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_key")
    assert states() == ["open"]


def test_a_repeat_while_the_first_request_is_answered_decides_no_other_call(editor, run, call, monkeypatch):
    first = post(editor, "approve-tool-call", body_for("", run))
    with monkeypatch.context() as patch:
        patch.setattr(decisions, "find_call_of_repeat", lambda key: None)
        refused = post(editor, "approve-tool-call", body_for("", run))
    again = post(editor, "approve-tool-call", body_for("", run))

    assert (refused.status_code, refused.json()["code"], refused.headers["Retry-After"]) == (409, "in_progress", "1")
    assert chunks(again) == chunks(first)
    assert states() == ["approved", "open"]
