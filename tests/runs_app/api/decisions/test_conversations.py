"""Decisions about waiting calls by the conversation of their run."""

from django.utils import timezone

from memory_app.models import Thread
from runs_app.models import AgentRun
from tests.factories import member
from tests.runs_app.api.decisions.conftest import QUESTION, waiting_run
from tests.runs_app.factories import PendingCallFactory, RunFactory


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


def test_a_call_is_found_however_many_runs_its_conversation_had_since(editor, run, call, runner, user):
    thread = Thread.objects.create(user=user, agent_key="concierge", key="t1", resource_key="ann")
    AgentRun.objects.filter(pk=run.pk).update(thread=thread)
    for _ in range(21):
        RunFactory(agent=run.agent, requested_by=user, thread=thread, created_at=timezone.now(), chunks=[])
    body = {"resourceId": "ann", "threadId": "t1", "toolCallId": "call-1", "approved": True}

    answer = editor.post("/api/agents/concierge/send-tool-approval", body)

    assert (answer.status_code, answer.body.get("runId")) == (200, str(run.pk))


def test_the_own_conversation_comes_before_one_of_the_same_name(editor, run, call, runner, user):
    """A publisher may decide the calls of both. Some servers number the calls of each answer."""
    user.memberships.update(role="publisher")
    other = member("editor")
    others_run = waiting_run(other, agent=run.agent, created_at=timezone.now())
    others_call = PendingCallFactory(run=others_run, call_id="call-1")
    for person, row in ((user, run), (other, others_run)):
        thread = Thread.objects.create(user=person, agent_key="concierge", key="t1", resource_key="ann")
        AgentRun.objects.filter(pk=row.pk).update(thread=thread)
    body = {"resourceId": "ann", "threadId": "t1", "toolCallId": "call-1", "approved": True}

    answer = editor.post("/api/agents/concierge/send-tool-approval", body)

    assert (answer.status_code, answer.body.get("runId")) == (200, str(run.pk))
    others_call.refresh_from_db()
    assert others_call.is_open


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
