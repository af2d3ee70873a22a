"""Runs that wait for people: on their pages and in the playground, with their time lines."""

import re
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from runs_app.models import AgentRun, PendingCall, RunClaim
from runs_app.models.pending_call import stored_call_id
from tests.factories import member
from tests.page_client import browser
from tests.runs_app.factories import RefundCallFactory, RunFactory
from tests.runs_app.views.conftest import page_text

HTMX = {"HX-Request": "true"}


@pytest.fixture
def call(ann, agent):
    return RefundCallFactory(run__agent=agent, run__requested_by=ann)


def page(client, run, name="view"):
    return client.get(reverse(f"runs:{name}", args=[run.pk]))


def bars(answer):
    return [(span.kind, span.label, span.note) for span in answer.context["answer"].spans]


@pytest.mark.parametrize("name", ["view", "answer"])
def test_the_call_can_be_decided_where_the_transcript_stops(editor, call, name):
    answer = page(editor, call.run, name)

    html = answer.content.decode()
    assert f'action="/approvals/{call.pk}/decide"' in html
    assert "data-stream" not in html
    assert "waits for a decision" in page_text(answer)


@pytest.mark.parametrize(
    ("columns", "text"),
    [({"state": "declined", "decided_by_name": "maya"}, "declined by maya"), ({"kind": "child"}, "finished")],
)
def test_a_decided_call_waits_for_no_decision_while_others_do(editor, call, columns, text):
    """The agent runs on when all are decided."""
    PendingCall.objects.update(**{"state": "resumed", "decided_at": timezone.now(), **columns})
    RefundCallFactory(run=call.run, call_id="call-2", root_id=call.root_id)

    html = page(editor, call.run, "answer").content.decode()

    assert f'data-call-state><span dir="auto">{text}</span>' in html
    assert "waits for a decision" not in html


def test_the_playground_shows_the_same_buttons(editor, agent, call):
    html = editor.get(f"/agents/{agent.pk}/try?columns=live&runs={call.run_id}").content.decode()

    assert f'action="/approvals/{call.pk}/decide"' in html


def test_a_decided_run_streams_on(editor, call):
    editor.post(f"/approvals/{call.pk}/decide", {"verdict": "approve"})

    answer = page(editor, call.run, "answer")

    assert f'data-stream="/runs/{call.run_id}/stream"' in answer.content.decode()
    assert f"/approvals/{call.pk}" not in answer.content.decode()


def test_the_run_above_shows_the_call_of_its_sub_agent(editor, ann, agent, call):
    parent = RunFactory(agent=agent, requested_by=ann, status="suspended", finished_at=None)
    payload = {"childRunId": str(call.run_id)}
    RefundCallFactory(run=parent, kind="child", call_id="above", payload=payload)
    PendingCall.objects.filter(pk=call.pk).update(root_id=parent.pk)
    AgentRun.objects.filter(pk=call.run_id).update(root_id=parent.pk, parent=parent)
    AgentRun.objects.filter(pk=parent.pk).update(root_id=parent.pk)

    html = page(editor, parent).content.decode()

    assert html.count('class="section approval"') == 1
    assert f'action="/approvals/{call.pk}/decide"' in html
    assert f"{call.run.configuration['name']} wants to call refund" in re.sub(r"<[^>]+>", "", html)


def test_a_run_that_waits_for_a_working_sub_agent_is_streamed(editor, ann, agent):
    run = RunFactory(agent=agent, requested_by=ann, status="suspended", finished_at=None)

    assert "data-stream" in page(editor, run).content.decode()


def test_former_members_read_that_the_team_decides(editor, ann, call):
    ann.memberships.all().delete()

    answer = page(editor, call.run)

    assert "Waiting for a decision of the team." in page_text(answer)
    assert "A-17" not in answer.content.decode()


def test_the_page_learns_that_somebody_else_decided(editor, call):
    url = f"/runs/{call.run_id}/waiting?calls=1"
    before = editor.get(url, headers=HTMX)
    editor.post(f"/approvals/{call.pk}/decide", {"verdict": "approve"})

    after = editor.get(url, headers=HTMX)

    assert "HX-Trigger" not in before.headers
    assert "approval-decided" in after.headers["HX-Trigger"]


def test_the_page_of_a_former_member_waits_without_being_fetched_again_and_again(editor, ann, call):
    """It shows no call. Every ten seconds it asks whether the run still waits."""
    ann.memberships.all().delete()
    (url,) = re.findall(r'hx-get="(/runs/[^"]+/waiting[^"]*)"', page(editor, call.run).content.decode())
    before = editor.get(url, headers=HTMX)
    AgentRun.objects.filter(pk=call.run_id).update(status="running", suspended_at=None)

    after = editor.get(url, headers=HTMX)

    assert "HX-Trigger" not in before.headers
    assert "approval-decided" in after.headers["HX-Trigger"]


def test_strangers_learn_nothing(call):
    client = browser(member("publisher", "elsewhere"))

    assert client.get(f"/runs/{call.run_id}/waiting").status_code == 404


def test_the_time_line_shows_who_decided_and_how_long_it_took(editor, call):
    PendingCall.objects.update(
        state="approved", decided_by_name="maya", decided_at=call.created_at + timedelta(hours=2)
    )
    AgentRun.objects.filter(pk=call.run_id).update(
        status="succeeded", suspended_at=None, finished_at=call.created_at + timedelta(hours=2, seconds=3)
    )

    answer = page(editor, call.run)

    assert ("person", "refund", "Approved by maya") in bars(answer)
    assert "refund Approved by maya 2 h" in page_text(answer)


def test_the_time_of_a_tool_is_that_after_the_decision(editor, ann, agent):
    calls = [("tool-call", {"toolCallId": "call-1", "toolName": "refund", "args": {}})]
    run = RunFactory(agent=agent, requested_by=ann, chunks=[*calls, ("tool-result", {"toolCallId": "call-1"})])
    decided_at = timezone.now()
    RefundCallFactory(run=run, state="approved", created_at=run.created_at, decided_at=decided_at)
    run.events.filter(number=2).update(created_at=decided_at + timedelta(seconds=4))

    answer = page(editor, run)

    assert "tool refund 4.0 s" in page_text(answer)  # in the transcript
    (bar,) = [span for span in answer.context["answer"].spans if span.kind == "tool"]
    assert bar.duration_text == "4.0 s"


@pytest.mark.parametrize(("state", "text"), [("declined", "declined by maya"), ("expired", "expired by maya")])
def test_a_call_that_was_not_carried_out_has_not_failed(editor, ann, agent, state, text):
    """Its result is an error for the agent. The tool has not run, and has no time."""
    calls = [("tool-call", {"toolCallId": "call-1", "toolName": "refund", "args": {}})]
    result = ("tool-result", {"toolCallId": "call-1", "result": "Not without a receipt.", "isError": True})
    run = RunFactory(agent=agent, requested_by=ann, chunks=[*calls, result])
    RefundCallFactory(run=run, state=state, decided_by_name="maya", decided_at=timezone.now())

    answer = page(editor, run)

    for response in (answer, page(editor, run, "answer")):
        html = response.content.decode()
        assert f'data-call-state><span dir="auto">{text}</span>' in html
        assert "failed after" not in html
    assert "Not without a receipt." in html
    assert [span for span in answer.context["answer"].spans if span.kind == "tool"] == []


def test_a_declined_call_is_declined_before_its_result_comes(editor, agent, call):
    """The agent reads the refusal in the next segment. The script of the page keeps what the page says of the call."""
    editor.post(f"/approvals/{call.pk}/decide", {"verdict": "decline"})

    html = page(editor, call.run, "answer").content.decode()

    assert f'data-stream="/runs/{call.run_id}/stream"' in html
    assert 'data-state="not-run"' in html
    assert 'data-call-state><span dir="auto">declined by ann</span>' in html
    assert "data-call-result>…<" in html


def test_a_call_with_a_long_id_was_declined(editor, agent, call):
    """Its row has the hash of the ID."""
    long_id = "call_" + "a" * 200
    payload = {"toolCallId": long_id, "toolName": "refund", "args": {}}
    call.run.events.filter(number=2).update(data={"type": "tool-call", "payload": payload})
    PendingCall.objects.filter(pk=call.pk).update(call_id=stored_call_id(long_id))
    editor.post(f"/approvals/{call.pk}/decide", {"verdict": "decline"})

    assert "declined by ann" in page_text(page(editor, call.run, "answer"))


def test_the_time_line_says_that_arguments_were_edited_and_leads_to_them(editor, call):
    """The transcript has the arguments that the model wrote."""
    PendingCall.objects.update(
        state="approved", decided_by_name="maya", decided_at=timezone.now(), edited_arguments={"amount": 1}
    )

    answer = page(editor, call.run)

    assert "refund Approved by maya with edited arguments" in page_text(answer)
    assert f'href="/approvals/{call.pk}">Approved by maya with edited arguments</a>' in answer.content.decode()


def test_a_long_wait_leaves_room_for_the_work(editor, ann, agent):
    now = timezone.now()
    steps = [("step-start", {}), ("text-delta", {"text": "Done"}), ("step-finish", {})]
    run = RunFactory(agent=agent, requested_by=ann, chunks=steps, created_at=now - timedelta(days=3), finished_at=now)
    RefundCallFactory(
        run=run,
        state="approved",
        created_at=now - timedelta(days=3, seconds=-1),
        decided_at=now - timedelta(seconds=1),
    )

    spans = page(editor, run).context["answer"].spans

    (wait,) = [span for span in spans if span.kind == "person"]
    assert wait.width == pytest.approx(1000 / 3, abs=1)
    assert wait.duration_text.startswith("2 days 23 h")


def test_the_time_line_shows_that_another_process_took_over(editor, ann, agent):
    run = RunFactory(agent=agent, requested_by=ann)
    RunClaim.objects.create(run=run, segment=0, holder="web-1-ab12:77:cafe", claimed_at=run.created_at)
    RunClaim.objects.create(run=run, segment=1, holder="web-1-ab12:78:cafe", claimed_at=run.created_at)

    processes = [bar for bar in bars(page(editor, run)) if bar[0] == "process"]

    assert processes == [("process", "Process replaced", "by web-1-ab12, process 77")]


@pytest.mark.parametrize(("hours", "is_noted"), [(5, True), (0, False)])
def test_the_time_line_says_that_long_waits_are_drawn_shorter(editor, call, hours, is_noted):
    now = timezone.now()
    AgentRun.objects.update(created_at=now - timedelta(hours=hours, minutes=1), status="completed", finished_at=now)
    PendingCall.objects.update(
        created_at=now - timedelta(hours=hours), decided_at=now, state="approved", decided_by_name="maya"
    )

    assert ("Waits for people are drawn shorter than they were." in page_text(page(editor, call.run))) is is_noted
