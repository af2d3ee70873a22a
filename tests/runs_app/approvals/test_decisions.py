"""Decisions about waiting calls: who may decide, what is stored, and when the run continues."""

from datetime import timedelta

import pytest
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from access_app.models import ApiKey, Membership
from access_app.role import RoleRequired
from runs_app.approvals.approval_signals import approval_stored
from runs_app.approvals.decisions import Decision, Verdict, decide_pending_call
from runs_app.approvals.errors import (
    AlreadyDecided,
    ArgumentsChanged,
    CallExpired,
    InvalidDecision,
    NotSuspended,
)
from runs_app.approvals.expiry import expire_calls, expire_calls_of
from runs_app.models import PendingCall
from runs_app.models.run_queryset import AgentRunQuerySet
from runs_app.signals import approval_decided
from tests.factories import MembershipFactory, member
from tests.runs_app.factories import PendingCallFactory, RunFactory

pytestmark = pytest.mark.django_db


def suspended_run(**fields):
    return RunFactory(suspended=True, chunks=[], **fields)


API = PendingCall.Via.API
SCHEMA = {
    "type": "object",
    "properties": {"order": {"type": "string"}, "amount": {"type": "number", "maximum": 500}},
    "required": ["order", "amount"],
}


@pytest.fixture
def editor():
    return member("editor")


@pytest.fixture
def call(editor):
    return PendingCallFactory(run=suspended_run(requested_by=editor), arguments_schema=SCHEMA)


def approve(call, user, **fields):
    return decide_pending_call(call, Decision(Verdict.APPROVE, **fields), user, API)


def issues(call, user, **fields):
    with pytest.raises(InvalidDecision) as raised:
        decide_pending_call(call, Decision(**fields), user, API)
    call.refresh_from_db()
    assert call.is_open
    return {issue.field: issue.message for issue in raised.value.issues}


# --- What is stored


def test_the_decision_is_stored_with_who_when_and_where(call, editor, dispatched):
    decided = decide_pending_call(call, Decision(Verdict.DECLINE, reason="Too much."), editor, PendingCall.Via.PAGE)

    decided.refresh_from_db()
    assert (decided.state, decided.reason, decided.via) == ("declined", "Too much.", "page")
    assert (decided.decided_by, decided.decided_by_name) == (editor, editor.username)
    assert timezone.now() - decided.decided_at < timedelta(minutes=1)


def test_who_left_the_team_while_the_run_was_locked_decides_nothing(call, editor, dispatched, monkeypatch):
    lock = AgentRunQuerySet.select_for_update

    def leave_and_lock(rows, **options):
        Membership.objects.filter(user=editor).delete()
        return lock(rows, **options)

    monkeypatch.setattr(AgentRunQuerySet, "select_for_update", leave_and_lock)

    with pytest.raises(PermissionDenied):
        approve(call, editor)

    call.refresh_from_db()
    assert call.is_open


def test_a_call_that_was_deleted_while_the_run_was_locked_waits_for_no_decision(call, editor, dispatched, monkeypatch):
    lock = AgentRunQuerySet.select_for_update

    def forget_and_lock(rows, **options):
        PendingCall.objects.all().delete()
        return lock(rows, **options)

    monkeypatch.setattr(AgentRunQuerySet, "select_for_update", forget_and_lock)

    with pytest.raises(NotSuspended, match="deleted"):
        approve(call, editor)


def test_edited_arguments_are_stored_beside_those_of_the_model(call, editor, dispatched):
    approve(call, editor, arguments={"order": "A-17", "amount": 100})

    call.refresh_from_db()
    assert call.arguments == {"order": "A-17", "amount": 250}
    assert call.edited_arguments == {"order": "A-17", "amount": 100}


def test_arguments_sent_unchanged_are_no_edit(call, editor, dispatched):
    assert approve(call, editor, arguments={"amount": 250.0, "order": "A-17"}).edited_arguments is None


def test_the_signal_is_sent_after_the_commit(call, editor, dispatched):
    received = []

    def receive(call, **kwargs):
        received.append((call.pk, call.state))

    approval_decided.connect(receive)
    try:
        approve(call, editor)
        assert received == []
        dispatched()
    finally:
        approval_decided.disconnect(receive)

    assert received == [(call.pk, "approved")]


# --- The run


def test_the_last_decision_queues_the_next_segment(call, editor, dispatched):
    other = PendingCallFactory(run=call.run)

    approve(call, editor)
    call.run.refresh_from_db()
    assert (call.run.status, dispatched()) == ("suspended", [])
    decide_pending_call(other, Decision(Verdict.DECLINE), editor, API)

    run = call.run
    run.refresh_from_db()
    assert (run.status, run.segment, run.suspended_at, run.expires_at) == ("queued", 1, None, None)
    assert dispatched() == [run.pk]


def test_a_decision_and_an_expiry_do_not_read_the_conversation_of_the_run(call, editor, dispatched):
    now = timezone.now()
    other = PendingCallFactory(run=suspended_run(expires_at=now), created_at=now, expires_at=now)

    with CaptureQueriesContext(connection) as queries:
        approve(call, editor)
        assert expire_calls() == 1

    assert dispatched() == [call.run_id, other.run_id]
    assert not [query for query in queries if '"conversation"' in query["sql"].partition(" FROM ")[0]]


def test_the_run_expires_with_its_next_waiting_call(call, editor, dispatched):
    other = PendingCallFactory(run=call.run, expires_at=timezone.now() + timedelta(hours=1))

    approve(call, editor)

    call.run.refresh_from_db()
    assert call.run.expires_at == other.expires_at


def test_a_run_that_does_not_wait_accepts_no_decision(call, editor, dispatched):
    type(call.run).objects.filter(pk=call.run_id).update(status="running", suspended_at=None)

    with pytest.raises(NotSuspended):
        approve(call, editor)
    call.refresh_from_db()
    assert call.is_open


def test_a_call_of_an_earlier_segment_accepts_no_decision(call, editor, dispatched):
    type(call.run).objects.filter(pk=call.run_id).update(segment=3)

    with pytest.raises(NotSuspended):
        approve(call, editor)


# --- The second decision


def test_the_same_decision_by_the_same_user_returns_the_call(call, editor, dispatched):
    first = approve(call, editor, reason="Fine.", arguments={"order": "A-17", "amount": 100})
    decided_at = first.decided_at

    again = approve(call, editor, reason="Fine.", arguments={"order": "A-17", "amount": 100})

    assert (again.pk, again.decided_at) == (call.pk, decided_at)
    assert dispatched() == [call.run_id]


@pytest.mark.parametrize(
    "decision",
    [
        Decision(Verdict.DECLINE),
        Decision(Verdict.APPROVE, reason="Another reason."),
        Decision(Verdict.APPROVE, arguments={"order": "A-17", "amount": 1}),
    ],
)
def test_another_decision_by_the_same_user_says_how_the_call_was_decided(call, editor, dispatched, decision):
    approve(call, editor)

    with pytest.raises(AlreadyDecided) as raised:
        decide_pending_call(call, decision, editor, API)

    assert raised.value.call.decided_by == editor
    assert str(raised.value).startswith(f"This call was already approved by {editor.username} at 2")


def test_the_same_decision_by_another_user_says_who_was_faster(call, editor, dispatched):
    publisher = member("publisher")
    approve(call, publisher)

    with pytest.raises(AlreadyDecided, match=f"by {publisher.username} at"):
        approve(call, editor)


def test_an_expired_call_and_one_of_a_cancelled_run_say_so(editor, dispatched):
    expired = PendingCallFactory(run=suspended_run(requested_by=editor), state="expired")
    cancelled = PendingCallFactory(run=suspended_run(requested_by=editor), state="cancelled")

    with pytest.raises(CallExpired):
        approve(expired, editor)
    with pytest.raises(NotSuspended, match="its run has ended"):
        approve(cancelled, editor)


# --- Who may decide


def test_a_stranger_and_a_viewer_may_not_decide(call):
    with pytest.raises(PermissionDenied):
        approve(call, member("manager", "elsewhere"))
    viewer = member("viewer")
    call.run.requested_by = call.requested_by = viewer
    call.save()
    with pytest.raises(RoleRequired, match="Editor role"):
        approve(call, viewer)

    call.refresh_from_db()
    assert call.is_open


def test_a_key_cut_to_viewer_may_not_decide(call, editor):
    editor.api_key = ApiKey(user=editor, role="viewer")

    with pytest.raises(RoleRequired, match="Editor role"):
        approve(call, editor)


@pytest.mark.parametrize(
    ("role", "enough", "too_low"), [("publisher", "publisher", "editor"), ("manager",) * 2 + ("publisher",)]
)
def test_a_tool_can_demand_a_higher_role(dispatched, role, enough, too_low):
    person = member(too_low)
    call = PendingCallFactory(run=suspended_run(requested_by=person), role=role)

    with pytest.raises(RoleRequired, match=f"{role.capitalize()} role"):
        approve(call, person)

    assert approve(call, member(enough)).state == "approved"


def test_a_tool_can_demand_a_second_person(dispatched):
    publisher = member("publisher")
    call = PendingCallFactory(run=suspended_run(requested_by=publisher), four_eyes=True)

    with pytest.raises(PermissionDenied, match="second person"):
        approve(call, publisher)

    assert approve(call, member("publisher")).state == "approved"


def test_a_member_removed_while_the_run_waits_may_not_decide(call, editor):
    Membership.objects.filter(user=editor).delete()

    with pytest.raises(PermissionDenied):
        approve(call, editor)
    MembershipFactory(user=editor, role="viewer")
    with pytest.raises(PermissionDenied):
        approve(call, editor)


# --- What must fit


def test_arguments_that_changed_are_refused(call, editor, dispatched):
    with pytest.raises(ArgumentsChanged):
        approve(call, editor, mark="another")

    assert approve(call, editor, mark=call.mark).state == "approved"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"order": "A-17", "amount": 501}, {"arguments.amount": "501 is greater than the maximum of 500."}),
        ({"order": 7, "amount": "x"}, {"arguments.order", "arguments.amount"}),
        ({"order": "A-17"}, {"arguments.amount": "This is required."}),
        ({"order": "A-17", "amount": 1, "to": "me"}, {"arguments.to": "The tool has no such argument."}),
        ({"order": "A\0", "amount": 1}, {"arguments.order"}),
        ([], {"arguments"}),
    ],
)
def test_edited_arguments_must_fit_the_schema_of_the_tool(call, editor, arguments, expected):
    result = issues(call, editor, verdict=Verdict.APPROVE, arguments=arguments)

    assert result == expected or {*result} == expected


def test_resume_data_must_fit_its_schema(editor, dispatched):
    schema = {"type": "object", "properties": {"city": {"type": "string", "minLength": 2}}, "required": ["city"]}
    run = suspended_run(requested_by=editor)
    call = PendingCallFactory(run=run, kind=PendingCall.Kind.SUSPEND, resume_schema=schema)

    assert {*issues(call, editor, verdict=Verdict.RESUME)} == {"resumeData"}
    assert {*issues(call, editor, verdict=Verdict.RESUME, resume_data={"city": "x"})} == {"resumeData.city"}
    assert {*issues(call, editor, verdict=Verdict.APPROVE)} == {"decision"}
    decided = decide_pending_call(call, Decision(Verdict.RESUME, resume_data={"city": "Oslo"}), editor, API)

    decided.refresh_from_db()
    assert (decided.state, decided.resume_data) == ("resumed", {"city": "Oslo"})


def test_a_reference_of_a_schema_is_not_fetched(editor):
    run = suspended_run(requested_by=editor)
    schema = {"$ref": "http://127.0.0.1:9/schema.json"}
    call = PendingCallFactory(run=run, kind=PendingCall.Kind.SUSPEND, resume_schema=schema)

    assert {*issues(call, editor, verdict=Verdict.RESUME, resume_data=1)} == {"resumeData"}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"verdict": Verdict.RESUME, "resume_data": 1}, "decision"),
        ({"verdict": Verdict.DECLINE, "arguments": {}}, "arguments"),
        ({"verdict": Verdict.APPROVE, "resume_data": 1}, "resumeData"),
        ({"verdict": Verdict.DECLINE, "reason": "x" * 2001}, "reason"),
        ({"verdict": Verdict.DECLINE, "reason": "\0"}, "reason"),
    ],
)
def test_parts_that_do_not_belong_to_the_decision_are_refused(call, editor, fields, field):
    assert {*issues(call, editor, **fields)} == {field}


# --- Expiry


def test_a_call_that_expired_is_not_decided_even_before_the_reaper_runs(call, editor):
    PendingCall.objects.filter(pk=call.pk).update(expires_at=timezone.now() - timedelta(seconds=1))

    with pytest.raises(CallExpired):
        approve(call, editor)


@pytest.mark.parametrize(
    ("duration", "reason"),
    [
        (timedelta(days=7), "Nobody decided within 7 days."),
        (timedelta(hours=1), "Nobody decided within 1 hour."),
        (timedelta(minutes=90), "Nobody decided within 90 minutes."),
        (timedelta(seconds=45), "Nobody decided within 45 seconds."),
    ],
)
def test_expired_calls_are_declined_with_a_reason(editor, dispatched, duration, reason):
    now = timezone.now()
    run = suspended_run(requested_by=editor, expires_at=now - timedelta(seconds=1))
    call = PendingCallFactory(run=run, created_at=run.expires_at - duration, expires_at=run.expires_at)
    later = PendingCallFactory()

    assert expire_calls() == 1

    call.refresh_from_db()
    assert (call.state, call.via, call.reason, call.decided_by) == ("expired", "expiry", reason, None)
    assert dispatched() == [run.pk]
    later.refresh_from_db()
    assert later.is_open
    assert expire_calls() == 0


@pytest.mark.parametrize("columns", [{"status": "cancelled"}, {"segment": 3}])
def test_only_calls_of_the_current_segment_of_a_suspended_run_expire(editor, dispatched, columns):
    now = timezone.now()
    run = suspended_run(requested_by=editor, expires_at=now)
    call = PendingCallFactory(run=run, created_at=now - timedelta(hours=1), expires_at=now)
    type(run).objects.filter(pk=run.pk).update(**columns)

    assert expire_calls_of(run.pk) == 0

    call.refresh_from_db()
    assert call.is_open


def test_an_error_with_one_expired_call_holds_up_no_others(dispatched):
    now = timezone.now()
    first, second = [
        PendingCallFactory(run=suspended_run(expires_at=at), expires_at=at)
        for at in (now - timedelta(seconds=2), now - timedelta(seconds=1))
    ]

    def fail(sender, call, **kwargs):
        if call.pk == first.pk:
            raise ValueError("A receiver of this project is wrong.")

    approval_stored.connect(fail)
    try:
        assert expire_calls() == 1
    finally:
        approval_stored.disconnect(fail)

    assert [*PendingCall.objects.order_by("expires_at").values_list("state", flat=True)] == ["open", "expired"]
    assert dispatched() == [second.run_id]
