"""Decisions about waiting calls by the API: who may decide, what is refused, and what the response streams."""

import json
from contextlib import closing
from datetime import timedelta

import pytest
from django.utils import timezone

from memory_app.models import Thread
from runs_app.approvals import resuming
from runs_app.models import AgentRun, PendingCall, RunEvent
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.runs_app.factories import PendingCallFactory, RunFactory

SCHEMA = {
    "type": "object",
    "properties": {"order": {"type": "string"}, "amount": {"type": "number", "maximum": 500}},
    "required": ["order", "amount"],
}
QUESTION = {"type": "object", "properties": {"size": {"enum": ["S", "M"]}}, "required": ["size"]}
STREAMS = ["approve-tool-call", "resume-stream", "resume-stream-until-idle", "approve-network-tool-call"]
STREAMS += ["decline-tool-call", "decline-network-tool-call", "resume-network"]
GENERATES = ["approve-tool-call-generate", "decline-tool-call-generate"]


class FinishingRunner:
    """A runner that writes the rest of a run at once."""

    def dispatch(self, run_id):
        run = AgentRun.objects.get(pk=run_id)
        number = run.events.count()
        result = {"toolCallId": "call-1", "toolName": "refund", "result": "Done", "isError": False}
        text = {"id": "2-0", "text": "Refunded."}
        for kind, payload in (("tool-result", result), ("step-start", {}), ("text-delta", text), ("finish", {})):
            number += 1
            RunEvent.objects.create(run=run, number=number, type="chunk", data={"type": kind, "payload": payload})
        AgentRun.objects.filter(pk=run_id).update(
            status="succeeded", finish_reason="stop", output="Refunded.", finished_at=timezone.now()
        )
        return True


@pytest.fixture
def runner(monkeypatch):
    monkeypatch.setattr(resuming, "get_runner", FinishingRunner)


@pytest.fixture
def user(transactional_db):
    return member("editor", username="eddie")


@pytest.fixture
def editor(user):
    return Caller(api_key(user))


@pytest.fixture
def run(user):
    """Return a run that waits for approval of the call "call-1"."""
    return waiting_run(user)


@pytest.fixture
def call(run):
    return PendingCallFactory(run=run, call_id="call-1", arguments_schema=SCHEMA)


def waiting_run(user, **fields):
    agent = fields.pop("agent", None) or AgentFactory(id="concierge")
    run = RunFactory(agent=agent, requested_by=user, suspended=True, chunks=[], **fields)
    payload = {"toolCallId": "call-1", "toolName": "refund", "args": {"order": "A-17", "amount": 250}}
    for number, kind in enumerate(("start", "tool-call", "tool-call-approval", "suspended"), 1):
        data = {"type": kind, "payload": payload if "call" in kind else {}}
        RunEvent.objects.create(run=run, number=number, type=kind if kind == "suspended" else "chunk", data=data)
    return run


def send(caller, route, agent_id="concierge", **body):
    return caller.client.post(f"/api/agents/{agent_id}/{route}", body, content_type="application/json")


def chunks(answer):
    assert answer.status_code == 200, answer.content
    blocks = b"".join(answer.streaming_content).decode().split("\n\n")[:-1]
    assert blocks[-1] == "data: [DONE]"
    return [json.loads(block.partition("data: ")[2]) for block in blocks[:-1] if "data: " in block]


def kinds(answer):
    return [chunk["type"] for chunk in chunks(answer)]


def body_for(route, run, **more):
    decision = {"resumeData": {"approved": True}} if route.startswith("resume") else {}
    return {"runId": str(run.pk), **decision, **more}


# --- Streams


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


def test_the_same_decision_again_streams_the_same(editor, run, call, runner):
    body = body_for("", run, toolCallId="call-1")

    first, second = (kinds(send(editor, "approve-tool-call", **body)) for _ in range(2))

    assert first == second == ["tool-call", "tool-result", "step-start", "text-delta", "finish"]


# --- generate


def test_generate_forms_answer_as_generate(editor, run, call, runner):
    body = editor.post("/api/agents/concierge/approve-tool-call-generate", body_for("", run)).body

    assert (body["text"], body["finishReason"], body["runId"]) == ("Refunded.", "stop", str(run.pk))


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


# --- Networks


def test_a_network_answers_with_the_chunks_of_networks(editor, run, call, runner):
    answer = send(editor, "approve-network-tool-call", runId=str(run.pk))

    sent = chunks(answer)
    assert [chunk["type"] for chunk in sent] == [
        "tool-execution-start",
        "tool-execution-end",
        "routing-agent-text-delta",
        "routing-agent-end",
        "network-execution-event-finish",
        "network-execution-event-step-finish",
    ]
    assert {chunk["from"] for chunk in sent} == {"NETWORK"}
    assert sent[-1]["payload"]["result"] == "Refunded."


@pytest.mark.parametrize("route", ["approve-network-tool-call", "decline-network-tool-call", "resume-network"])
def test_a_network_that_waits_for_several_calls_says_which(editor, run, call, runner, route):
    PendingCallFactory(run=run, call_id="call-2")

    answer = editor.post(f"/api/agents/concierge/{route}", body_for(route, run))

    assert (answer.status_code, answer.body["code"]) == (409, "several_calls")
    assert answer.body["toolCallIds"] == ["call-1", "call-2"]


# --- By conversation


def test_a_call_is_decided_by_its_conversation(editor, run, call, runner, user):
    thread = Thread.objects.create(user=user, agent_key="concierge", key="t1", resource_key="ann")
    AgentRun.objects.filter(pk=run.pk).update(thread=thread)
    body = {"resourceId": "ann", "threadId": "t1", "toolCallId": "call-1", "approved": True}

    for _ in range(2):  # the same decision again is accepted
        answer = editor.post("/api/agents/concierge/send-tool-approval", body)
        assert (answer.status_code, answer.body) == (
            200,
            {"accepted": True, "runId": str(run.pk), "toolCallId": "call-1"},
        )
    other = editor.post("/api/agents/concierge/send-tool-approval", {**body, "resourceId": "bob"})
    unknown = editor.post("/api/agents/concierge/send-tool-approval", {**body, "toolCallId": "x"})
    changed = editor.post("/api/agents/concierge/send-tool-approval", {**body, "approved": False})

    assert (other.status_code, unknown.status_code, changed.status_code) == (404, 409, 409)
    assert [unknown.body["code"], changed.body["code"]] == ["not_suspended", "already_decided"]


def test_a_refusal_by_its_conversation_has_a_reason_and_checks_the_mark(editor, run, call, runner, user):
    thread = Thread.objects.create(user=user, agent_key="concierge", key="t1", resource_key="ann")
    AgentRun.objects.filter(pk=run.pk).update(thread=thread)
    body = {"resourceId": "ann", "threadId": "t1", "toolCallId": "call-1", "approved": False, "reason": "Too late."}

    other = editor.post("/api/agents/concierge/send-tool-approval", {**body, "mark": "another"})
    answer = editor.post("/api/agents/concierge/send-tool-approval", {**body, "mark": call.mark})

    assert (other.status_code, other.body["code"], answer.status_code) == (409, "arguments_changed", 200)
    call.refresh_from_db()
    assert (call.state, call.reason) == ("declined", "Too late.")


def test_a_question_is_answered_by_its_conversation(editor, run, runner, user):
    thread = Thread.objects.create(user=user, agent_key="concierge", key="t1", resource_key="ann")
    AgentRun.objects.filter(pk=run.pk).update(thread=thread)
    call = PendingCallFactory(run=run, call_id="q", kind="suspend", resume_schema=QUESTION)
    body = {"resourceId": "ann", "threadId": "t1", "toolCallId": "q", "approved": True, "resumeData": {"size": "M"}}

    assert editor.post("/api/agents/concierge/send-tool-approval", body).status_code == 200

    call.refresh_from_db()
    assert (call.state, call.resume_data) == ("resumed", {"size": "M"})


# --- By approval


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


@pytest.mark.parametrize(
    ("name", "value", "known"),
    [
        ("args", {"order": "B", "amount": 1}, "arguments"),
        ("Mark", "another", "mark"),
        ("resons", "No.", "reason"),
        ("tool_call_id", "call-2", "toolCallId"),
    ],
)
def test_a_misspelled_name_decides_nothing(editor, run, call, runner, name, value, known):
    """The call would be approved with other arguments, or without the check, that the caller meant."""
    refused = [send(editor, "approve-tool-call", **body_for("approve-tool-call", run, **{name: value}))]
    if known != "toolCallId":
        body = {"decision": "approve", name: value}
        refused.append(editor.client.post(f"/api/approvals/{call.pk}", body, content_type="application/json"))

    for answer in refused:
        assert (answer.status_code, answer.json()["issues"]) == (
            400,
            [{"field": name, "message": f"This name is unknown. Did you mean {known}?"}],
        )
    call.refresh_from_db()
    assert call.is_open


def test_options_that_the_published_client_sends_with_a_decision_are_ignored(editor, run, call, runner):
    options = {"memory": {"thread": "t"}, "requestContext": {"a": 1}, "maxSteps": 3, "format": "x", "untilIdle": False}

    assert kinds(send(editor, "approve-tool-call", **body_for("approve-tool-call", run, **options)))[-1] == "finish"


def test_another_mark_is_a_conflict(editor, call, runner):
    answer = editor.post(f"/api/approvals/{call.pk}", {"decision": "approve", "mark": "another"})

    assert (answer.status_code, answer.body["code"]) == (409, "arguments_changed")
    call.refresh_from_db()
    assert call.is_open


@pytest.mark.parametrize("route", [*STREAMS, *GENERATES])
def test_another_mark_is_a_conflict_on_each_route_of_an_agent(editor, run, call, runner, route):
    refused = send(editor, route, **body_for(route, run, mark="another"))
    call.refresh_from_db()
    assert (refused.status_code, refused.json()["code"], call.state) == (409, "arguments_changed", "open")

    with closing(send(editor, route, **body_for(route, run, mark=call.mark))) as answer:  # frees its stream
        assert answer.status_code == 200


@pytest.mark.parametrize("decision", ["maybe", "", "APPROVE"])
def test_an_unknown_decision_names_the_field(editor, call, decision):
    answer = editor.post(f"/api/approvals/{call.pk}", {"decision": decision})

    assert (answer.status_code, answer.body["issues"]) == (
        400,
        [{"field": "decision", "message": "Send one of approve, decline, resume."}],
    )


# --- What does not fit


def routes_with_bodies(call):
    """Return each way to decide a call, with its body."""
    run = call.run
    ways = [(f"/api/agents/concierge/{route}", body_for(route, run, toolCallId=call.call_id)) for route in STREAMS]
    ways += [(f"/api/agents/concierge/{route}", body_for(route, run)) for route in GENERATES]
    return [*ways, (f"/api/approvals/{call.pk}", {"decision": "approve"})]


def status_and_code(answer):
    return answer.status_code, answer.body["code"]


def test_a_decision_of_somebody_else_says_who_was_faster(editor, call, runner):
    publisher = Caller(api_key(member("publisher", username="paula")))
    assert publisher.post(f"/api/approvals/{call.pk}", {"decision": "decline"}).status_code == 200

    for path, body in routes_with_bodies(call):
        answer = editor.post(path, body)
        assert (path, *status_and_code(answer)) == (path, 409, "already_decided")
        assert (answer.body["state"], answer.body["decidedBy"]) == ("declined", "paula")
        assert "paula" in answer.body["error"]
        assert answer.body["decidedAt"]


def test_an_expired_call_is_gone(editor, call, runner):
    PendingCall.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    for path, body in routes_with_bodies(call):
        assert (path, *status_and_code(editor.post(path, body))) == (path, 410, "expired")


def test_a_run_that_does_not_wait_is_a_conflict(editor, call, runner):
    AgentRun.objects.update(status="succeeded")
    PendingCall.objects.update(state="cancelled")

    for path, body in routes_with_bodies(call):
        assert (path, *status_and_code(editor.post(path, body))) == (path, 409, "not_suspended")


def test_arguments_that_do_not_fit_are_named_by_path(editor, run, call):
    for arguments, field in (
        ({"order": "A", "amount": 900}, "arguments.amount"),
        ({"order": 7, "amount": 1}, "arguments.order"),
        ({"order": "A"}, "arguments.amount"),
        ({"order": "A", "amount": 1, "extra": 1}, "arguments.extra"),
        ("all", "arguments"),
    ):
        for path, body in (
            ("/api/agents/concierge/approve-tool-call", body_for("", run, arguments=arguments)),
            (f"/api/approvals/{call.pk}", {"decision": "approve", "arguments": arguments}),
        ):
            answer = editor.post(path, body)
            assert (*status_and_code(answer), answer.body["issues"][0]["field"]) == (422, "invalid_decision", field)
    call.refresh_from_db()
    assert call.is_open


def test_data_that_do_not_fit_are_named_by_path(editor, run, call):
    question = PendingCallFactory(run=run, call_id="q", kind="suspend", resume_schema=QUESTION)
    resume = "/api/agents/concierge/resume-stream"

    for call_id, data, field in (
        ("q", {"size": "XL"}, "resumeData.size"),
        ("q", {}, "resumeData.size"),
        ("call-1", {"size": "M"}, "resumeData.approved"),
        ("call-1", "yes", "resumeData.approved"),
    ):
        answer = editor.post(resume, {"runId": str(run.pk), "toolCallId": call_id, "resumeData": data})
        assert (*status_and_code(answer), answer.body["issues"][0]["field"]) == (422, "invalid_decision", field)
    answer = editor.post(f"/api/approvals/{question.pk}", {"decision": "approve"})
    assert (answer.status_code, answer.body["issues"][0]["field"]) == (422, "decision")


@pytest.mark.parametrize("route", [*STREAMS, *GENERATES])
def test_a_body_without_a_run_or_of_wrong_types_names_the_field(editor, route):
    for body, field in (({}, "runId"), ({"runId": 7}, "runId"), ({"runId": "x", "toolCallId": 7}, "toolCallId")):
        answer = editor.post(f"/api/agents/concierge/{route}", {**body, "resumeData": {}})
        assert (answer.status_code, answer.body["issues"][0]["field"]) == (400, field)
    assert editor.post(f"/api/agents/concierge/{route}", {"runId": "x", "resumeData": {}}).status_code == 404


# --- Who may decide


def test_strangers_find_nothing(call, user):
    former = Caller(api_key(user))
    user.memberships.all().delete()
    strangers = [Caller(api_key(member(role, owner))) for role, owner in (("editor", ""), ("manager", "elsewhere"))]

    for caller in (former, *strangers):
        for path, body in routes_with_bodies(call):
            status = caller.post(path, body).status_code
            assert (path, status) == (path, 404) or (caller is former and status == 403)
    call.refresh_from_db()
    assert call.is_open


def test_a_run_of_another_agent_is_not_found(editor, run, call):
    assert send(editor, "approve-tool-call", agent_id="other", runId=str(run.pk)).status_code == 404


def test_a_key_cut_to_viewer_reads_and_cannot_decide(call, user):
    reader = Caller(api_key(user, "viewer"))

    for path, body in routes_with_bodies(call):
        answer = reader.post(path, body)
        assert (path, answer.status_code) == (path, 403)
        assert "Editor" in answer.body["error"]
    assert reader.get(f"/api/approvals/{call.pk}").body["state"] == "open"


def test_a_tool_can_demand_a_publisher_or_a_second_person(editor, call, runner):
    PendingCall.objects.update(role="publisher")
    answer = editor.post(f"/api/approvals/{call.pk}", {"decision": "approve"})
    assert (answer.status_code, "Publisher" in answer.body["error"]) == (403, True)

    PendingCall.objects.update(role="editor", four_eyes=True)
    answer = editor.post(f"/api/approvals/{call.pk}", {"decision": "approve"})
    assert (answer.status_code, "second person" in answer.body["error"]) == (403, True)


def test_a_refused_decision_frees_its_stream(editor, run, call, settings):
    settings.RUN_STREAMS_PER_USER = 1

    for _ in range(3):
        answer = editor.post("/api/agents/concierge/approve-tool-call", {"runId": str(run.pk), "toolCallId": "x"})
        assert status_and_code(answer) == (409, "not_suspended")


def test_a_decision_takes_a_fixed_number_of_queries(editor, call, runner, django_assert_max_num_queries):
    editor.get("/api/approvals")

    with django_assert_max_num_queries(20):
        editor.post(f"/api/approvals/{call.pk}", {"decision": "approve"})
