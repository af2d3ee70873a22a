"""Decisions by the API that are refused: who may decide, and what a body must have."""

from contextlib import closing
from datetime import timedelta

import pytest
from django.utils import timezone

from runs_app.models import AgentRun, PendingCall
from tests.api_client import Caller
from tests.factories import api_key, member
from tests.runs_app.api.decisions.conftest import GENERATES, QUESTION, STREAMS, body_for, kinds, send
from tests.runs_app.factories import PendingCallFactory


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


def test_arguments_and_data_have_the_limit_of_the_input_of_a_run(editor, run, call, settings):
    settings.RUN_MAX_INPUT = 1024
    question = PendingCallFactory(run=run, call_id="q", kind="suspend", resume_schema={"type": "object"})

    for pending, body, field in (
        (question, {"decision": "resume", "resumeData": {"note": "x" * 1100}}, "resumeData"),
        (call, {"decision": "approve", "arguments": {"order": "x" * 1100, "amount": 1}}, "arguments"),
    ):
        answer = editor.post(f"/api/approvals/{pending.pk}", body)
        issue = {"field": field, "message": "This must not exceed 1 KB. Send less."}
        assert (*status_and_code(answer), answer.body["issues"]) == (422, "invalid_decision", [issue])
        pending.refresh_from_db()
        assert pending.is_open


@pytest.mark.parametrize("route", [*STREAMS, *GENERATES])
def test_a_body_without_a_run_or_of_wrong_types_names_the_field(editor, route):
    for body, field in (({}, "runId"), ({"runId": 7}, "runId"), ({"runId": "x", "toolCallId": 7}, "toolCallId")):
        answer = editor.post(f"/api/agents/concierge/{route}", {**body, "resumeData": {}})
        assert (answer.status_code, answer.body["issues"][0]["field"]) == (400, field)
    assert editor.post(f"/api/agents/concierge/{route}", {"runId": "x", "resumeData": {}}).status_code == 404


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
