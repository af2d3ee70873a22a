"""Lists of the calls that wait for people or were decided, and single ones."""

from datetime import timedelta

import pytest
from django.utils import timezone

from runs_app.models import PendingCall
from tests.api_client import Caller
from tests.factories import api_key, member
from tests.runs_app.factories import PendingCallFactory, RunFactory

pytestmark = pytest.mark.django_db

State = PendingCall.State


@pytest.fixture
def user():
    return member("editor", username="eddie")


@pytest.fixture
def editor(user):
    return Caller(api_key(user))


def own_call(user, **fields):
    """Return a call of a run of this user."""
    return PendingCallFactory(run=RunFactory(requested_by=user, suspended=True, chunks=[]), **fields)


def ids(answer):
    return [body["id"] for body in answer.body["approvals"]]


def test_an_approval_says_who_may_decide_what(editor, user):
    call = own_call(user, call_id="call-7", role="publisher", four_eyes=True)

    body = editor.get(f"/api/approvals/{call.pk}").body

    assert {name: body[name] for name in body if not name.endswith("At")} == {
        "id": str(call.pk),
        "runId": str(call.run_id),
        "rootRunId": str(call.run_id),
        "agentId": call.run.agent_key,
        "toolCallId": "call-7",
        "toolName": "refund",
        "args": {"order": "A-17", "amount": 250},
        "kind": "approval",
        "state": "open",
        "role": "publisher",
        "fourEyes": True,
        "mark": "0123456789abcdef",
        "requestedBy": "eddie",
        "reason": None,
        "resumeSchema": None,
        "suspendPayload": None,
        "decidedBy": None,
        "via": None,
        "editedArguments": None,
    }
    assert body["createdAt"] < body["expiresAt"]
    assert body["decidedAt"] is None


def test_a_decided_approval_says_who_decided(editor, user):
    decided = {"decided_by_name": "ann", "decided_at": timezone.now(), "via": "page", "reason": "Too much."}
    call = own_call(user, state=State.DECLINED, edited_arguments={"amount": 1}, **decided)

    body = editor.get(f"/api/approvals/{call.pk}").body

    assert [body[name] for name in ("state", "decidedBy", "via", "reason")] == ["declined", "ann", "page", "Too much."]
    assert (body["editedArguments"], body["decidedAt"] is None) == ({"amount": 1}, False)


def test_a_question_has_its_payload_and_schema(editor, user):
    schema = {"type": "object", "properties": {"sure": {"type": "boolean"}}}
    call = own_call(user, kind="suspend", payload={"question": "Sure?"}, resume_schema=schema)

    body = editor.get(f"/api/approvals/{call.pk}").body

    assert (body["kind"], body["suspendPayload"], body["resumeSchema"]) == ("suspend", {"question": "Sure?"}, schema)


def test_waiting_calls_are_listed_oldest_first_and_decided_ones_by_their_decision(editor, user):
    now = timezone.now()
    first, second = (own_call(user, created_at=now - timedelta(hours=age)) for age in (2, 1))
    early, late, declined = (
        own_call(user, state=state, decided_at=now - timedelta(hours=age))
        for state, age in ((State.APPROVED, 3), (State.APPROVED, 1), (State.DECLINED, 2))
    )

    assert ids(editor.get("/api/approvals")) == [str(first.pk), str(second.pk)]
    assert ids(editor.get("/api/approvals?state=open")) == [str(first.pk), str(second.pk)]
    assert ids(editor.get("/api/approvals?state=approved")) == [str(late.pk), str(early.pk)]
    assert ids(editor.get("/api/approvals?state=decided")) == [str(late.pk), str(declined.pk), str(early.pk)]


def test_the_list_has_pages_and_filters(editor, user):
    calls = [own_call(user) for _ in range(3)]

    page = editor.get("/api/approvals?perPage=2&page=1").body
    of_agent = editor.get(f"/api/approvals?agentId={calls[1].agent_key}")

    assert [page[name] for name in ("total", "page", "perPage", "hasMore")] == [3, 1, 2, False]
    assert [body["id"] for body in page["approvals"]] == [str(calls[2].pk)]
    assert ids(of_agent) == [str(calls[1].pk)]


def test_invalid_filters_are_named(editor):
    answer = editor.get("/api/approvals?state=maybe&perPage=0")

    assert answer.status_code == 400
    assert [issue["field"] for issue in answer.body["issues"]] == ["perPage", "state"]
    assert editor.get("/api/approvals?stat=open").body["warnings"][0]["field"] == "stat"


def test_calls_that_wait_for_a_child_run_are_not_listed(editor, user):
    call = own_call(user, kind="child")

    assert ids(editor.get("/api/approvals")) == []
    assert editor.get(f"/api/approvals/{call.pk}").status_code == 404


@pytest.mark.parametrize("approval_id", ["x", "42", "0198a6c2-7c1e-7d3a-9f00-5b1f8d2c4e6a", "%F0%9F%A6%8A"])
def test_an_unknown_approval_is_not_found(editor, approval_id):
    answer = editor.get(f"/api/approvals/{approval_id}")

    assert (answer.status_code, answer.body["code"]) == (404, "not_found")


# --- Who may read


def test_strangers_see_nothing(user):
    call = own_call(user)
    strangers = [member("manager", "elsewhere"), member("editor"), member("viewer")]

    for caller in (Caller(api_key(stranger)) for stranger in strangers):
        assert caller.get(f"/api/approvals/{call.pk}").status_code == 404
        assert ids(caller.get("/api/approvals")) == []


def test_publishers_and_keys_cut_to_viewer_read(user):
    call = own_call(user)

    for key in (api_key(member("publisher")), api_key(user, "viewer")):
        assert ids(Caller(key).get("/api/approvals")) == [str(call.pk)]
        assert Caller(key).get(f"/api/approvals/{call.pk}").status_code == 200


def test_former_members_see_no_calls_of_their_runs(editor, user):
    call = own_call(user)
    user.memberships.all().delete()

    assert ids(editor.get("/api/approvals")) == []
    assert editor.get(f"/api/approvals/{call.pk}").status_code == 404


def test_superusers_read_all_also_with_a_key_cut_to_viewer(user, django_user_model):
    call = own_call(user)
    root = django_user_model.objects.create_superuser("root")
    own = own_call(root)

    assert ids(Caller(api_key(root)).get("/api/approvals")) == [str(call.pk), str(own.pk)]
    assert ids(Caller(api_key(root, "viewer")).get("/api/approvals")) == [str(own.pk)]


def test_the_lists_take_a_fixed_number_of_queries(editor, user, django_assert_num_queries):
    own_call(user)
    editor.get("/api/approvals")  # the first use of the key is written
    with django_assert_num_queries(3):
        editor.get("/api/approvals")
    for _ in range(3):
        own_call(user)

    with django_assert_num_queries(3):
        assert len(editor.get("/api/approvals").body["approvals"]) == 4
    call = PendingCall.objects.first()
    with django_assert_num_queries(2):
        editor.get(f"/api/approvals/{call.pk}")
