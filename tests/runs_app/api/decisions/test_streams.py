"""Decisions about waiting calls by the API: what is stored, and what the response streams."""

import json

import pytest
from django.utils import timezone

from runs_app.approvals import resuming
from runs_app.models import AgentRun, PendingCall
from tests.factories import AgentFactory
from tests.runs_app.api.decisions.conftest import (
    GENERATES,
    QUESTION,
    STREAMS,
    AskingAgainRunner,
    body_for,
    chunks,
    kinds,
    send,
)
from tests.runs_app.factories import PendingCallFactory, RunFactory


@pytest.mark.parametrize("route", STREAMS[:3])
def test_the_stream_repeats_the_decided_call_and_goes_on_after_the_suspension(editor, run, call, runner, route):
    answer = send(editor, route, **body_for(route, run, toolCallId="call-1"))

    first, *rest = chunks(answer)
    assert first["payload"] == {"toolCallId": "call-1", "toolName": "refund", "args": {"order": "A-17", "amount": 250}}
    assert [first["type"], *(chunk["type"] for chunk in rest)] == [
        "tool-call",
        "tool-result",
        "step-start",
        "text-delta",
        "finish",
    ]
    call.refresh_from_db()
    assert (call.state, call.decided_by, call.via) == ("approved", run.requested_by, "api")


def test_the_repeated_call_has_no_number(editor, run, call, runner):
    answer = editor.client.post(
        "/api/agents/concierge/approve-tool-call",
        body_for("approve", run),
        content_type="application/json",
        headers={"Accept": "text/event-stream"},
    )

    blocks = b"".join(answer.streaming_content).decode().split("\n\n")
    assert [block.partition("\n")[0].partition(":")[0] for block in blocks[:3]] == ["data", "id", "id"]
    assert blocks[1].startswith("id: 5\n")


def test_a_decline_carries_its_reason(editor, run, call, runner):
    assert kinds(send(editor, "decline-tool-call", **body_for("", run, reason="Too much.")))[0] == "tool-call"

    call.refresh_from_db()
    assert (call.state, call.reason) == ("declined", "Too much.")


@pytest.mark.parametrize(("approved", "state"), [(True, "approved"), (False, "declined")])
def test_resume_stream_decides_a_call_that_waits_for_approval(editor, run, call, runner, approved, state):
    data = {"approved": approved, "reason": "Because."}
    kinds(send(editor, "resume-stream", runId=str(run.pk), resumeData=data))

    call.refresh_from_db()
    assert (call.state, call.reason, call.resume_data) == (state, "Because.", None)


def test_edited_arguments_are_stored_and_repeated_by_the_stream(editor, run, call, runner):
    edited = {"order": "A-17", "amount": 90}
    first = chunks(send(editor, "approve-tool-call", **body_for("", run, arguments=edited)))[0]

    call.refresh_from_db()
    assert call.edited_arguments == first["payload"]["args"] == edited


def test_data_for_a_question_are_stored(editor, run, runner):
    call = PendingCallFactory(
        run=run, call_id="q", kind="suspend", payload={"question": "Size?"}, resume_schema=QUESTION
    )

    kinds(send(editor, "resume-stream", runId=str(run.pk), resumeData={"size": "M"}))

    call.refresh_from_db()
    assert (call.state, call.resume_data) == ("resumed", {"size": "M"})


def test_a_run_that_waits_for_other_calls_stays_suspended(editor, run, call, runner):
    other = PendingCallFactory(run=run, call_id="call-2", kind="suspend", payload={"why": "?"}, resume_schema=QUESTION)

    decided, waiting, suspended = chunks(send(editor, "approve-tool-call", **body_for("", run, toolCallId="call-1")))

    assert (decided["type"], decided["payload"]["toolCallId"]) == ("tool-call", "call-1")
    assert (waiting["type"], suspended["type"]) == ("tool-call-suspended", "suspended")
    assert json.loads(waiting["payload"].pop("resumeSchema")) == QUESTION
    assert waiting["payload"] == {
        "toolCallId": "call-2",
        "toolName": "refund",
        "args": other.arguments,
        "suspendPayload": {"why": "?"},
    }
    run.refresh_from_db()
    assert run.status == "suspended"

    last = chunks(send(editor, "resume-stream", runId=str(run.pk), toolCallId="call-2", resumeData={"size": "S"}))
    assert [chunk["payload"].get("toolCallId") for chunk in last[:2]] == ["call-1", "call-2"]
    assert last[-1]["type"] == "finish"


def test_of_two_decisions_at_once_the_first_stream_ends_with_the_wait(editor, run, call, runner):
    PendingCallFactory(run=run, call_id="call-2")
    body = body_for("", run)

    # No stream is read before both decisions are stored.
    first, last = (send(editor, "approve-tool-call", **body, toolCallId=name) for name in ("call-1", "call-2"))

    assert kinds(last) == ["tool-call", "tool-call", "tool-result", "step-start", "text-delta", "finish"]
    assert kinds(first) == ["tool-call", "tool-call-approval", "suspended"]


def test_a_call_of_a_sub_agent_is_decided_by_the_call_of_the_run(editor, run, user, runner):
    child = RunFactory(agent=AgentFactory(), parent=run, root_id=run.pk, requested_by=user, suspended=True, chunks=[])
    PendingCallFactory(
        run=run, call_id="own", tool="agent-helper", kind="child", payload={"childRunId": str(child.pk)}
    )
    leaf = PendingCallFactory(run=child, call_id="leaf")

    answer = send(editor, "approve-tool-call", **body_for("", run, toolCallId="own"))
    AgentRun.objects.filter(pk=run.pk).update(status="succeeded", finished_at=timezone.now())

    assert [(chunk["type"], chunk["payload"]["toolName"]) for chunk in chunks(answer)] == [
        ("tool-call", "agent-helper")
    ]
    leaf.refresh_from_db()
    assert leaf.state == "approved"


def test_the_call_of_a_sub_agent_that_still_works_is_repeated_too(editor, run, user, runner):
    leaves = []
    for name in ("first", "second"):
        child = RunFactory(
            agent=AgentFactory(), parent=run, root_id=run.pk, requested_by=user, suspended=True, chunks=[]
        )
        payload = {"childRunId": str(child.pk)}
        PendingCallFactory(run=run, call_id=name, tool="agent-helper", kind="child", payload=payload)
        leaves.append(PendingCallFactory(run=child))
    AgentRun.objects.filter(pk=leaves[0].run_id).update(status="running")
    PendingCall.objects.filter(pk=leaves[0].pk).update(state="approved", decided_at=timezone.now())

    answer = send(editor, "approve-tool-call", **body_for("", run, toolCallId="second"))
    AgentRun.objects.filter(pk=run.pk).update(status="succeeded", finished_at=timezone.now())

    repeated = [(chunk["type"], chunk["payload"]["toolCallId"]) for chunk in chunks(answer)]
    assert repeated == [("tool-call", "first"), ("tool-call", "second")]


def test_the_same_decision_again_streams_the_same(editor, run, call, runner):
    body = body_for("", run, toolCallId="call-1")

    first, second = (kinds(send(editor, "approve-tool-call", **body)) for _ in range(2))

    assert first == second == ["tool-call", "tool-result", "step-start", "text-delta", "finish"]


def test_a_repeated_decision_of_a_run_that_waits_again_shows_its_new_call_once(editor, run, call, monkeypatch):
    monkeypatch.setattr(resuming, "get_runner", AskingAgainRunner)
    body = body_for("", run, toolCallId="call-1")

    first, second = (kinds(send(editor, "approve-tool-call", **body)) for _ in range(2))

    assert first == second == ["tool-call", "tool-result", "tool-call", "tool-call-approval", "suspended"]


def test_generate_forms_answer_as_generate(editor, run, call, runner):
    body = editor.post("/api/agents/concierge/approve-tool-call-generate", body_for("", run)).body

    assert (body["text"], body["finishReason"], body["runId"]) == ("Refunded.", "stop", str(run.pk))


@pytest.mark.parametrize("route", GENERATES)
def test_generate_forms_have_the_unknown_names_of_the_decision_as_warnings(editor, run, call, runner, route):
    AgentRun.objects.update(warnings=[{"field": "tools", "key": "gone", "message": "No tool has the key 'gone'."}])

    answer = editor.post(f"/api/agents/concierge/{route}?traced=yes", body_for("", run, colour="red"))

    assert [warning["field"] for warning in answer.body["warnings"]] == ["tools", "traced", "colour"]


def test_generate_of_a_run_that_still_waits_is_suspended(editor, run, call, runner):
    PendingCallFactory(run=run, call_id="call-2")

    answer = editor.post("/api/agents/concierge/decline-tool-call-generate", body_for("", run, toolCallId="call-1"))

    assert answer.status_code == 200
    assert (answer.body["finishReason"], answer.body["runId"]) == ("suspended", str(run.pk))
    assert answer.body["suspendPayload"] == {
        "toolCallId": "call-2",
        "toolName": "refund",
        "args": {"order": "A-17", "amount": 250},
    }


def test_an_approval_is_decided_by_its_id(editor, call, runner):
    body = {"decision": "approve", "reason": "Fine.", "arguments": {"order": "B", "amount": 1}, "mark": call.mark}

    first, second = (editor.post(f"/api/approvals/{call.pk}", body) for _ in range(2))

    assert first.status_code == second.status_code == 200
    assert first.body == second.body
    assert [first.body[name] for name in ("state", "decidedBy", "via", "reason", "editedArguments")] == [
        "approved",
        "eddie",
        "api",
        "Fine.",
        {"order": "B", "amount": 1},
    ]
