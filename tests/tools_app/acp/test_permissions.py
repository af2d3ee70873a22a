"""The answers to requests for permission: by policies, by decisions of people, and for a whole conversation."""

from dataclasses import replace

import pytest

from agentcms.ids import uuid7
from runs_app.models import PendingCall
from tests.factories import AgentFactory, UserFactory
from tests.memory_app.conftest import add_thread
from tests.runs_app.factories import RefundCallFactory, RunFactory
from tests.tools_app.acp.conftest import create_agent
from tools_app.acp.permissions import (
    ChosenOption,
    Decisions,
    PermissionAnswer,
    load_always,
    load_permission_answers,
    remember_always,
    write_request,
)
from tools_app.models import AcpPermission

WRITE = write_request("a.txt", "hello")


def request_with(*kinds, **fields):
    """Return a request whose options have these kinds, and the kinds as IDs."""
    return replace(WRITE, options=tuple(PermissionAnswer(kind, kind, kind) for kind in kinds), **fields)


@pytest.mark.parametrize(
    ("policy", "kinds", "expected"),
    [
        ("reject", ["allow_once", "reject_always"], "reject_always"),
        ("reject", ["reject_always", "reject_once"], "reject_always"),
        ("reject", ["allow_once"], ""),
        ("first_option", ["allow_once", "reject_once"], "allow_once"),
        ("first_option", [], ""),
        ("allow_reads", ["reject_once", "allow_always"], "allow_always"),
        ("allow_reads", ["reject_once", "allow_once"], "allow_once"),
        ("allow_reads", ["reject_once"], ""),
        ("ask", ["allow_once"], None),
    ],
)
def test_a_policy_chooses_an_option_that_the_request_has(policy, kinds, expected):
    request = request_with(*kinds, kind="read")

    assert Decisions(policy, True).answer(request) == expected


@pytest.mark.parametrize("policy", ["ask", "allow_reads"])
def test_a_write_is_rejected_if_nobody_can_be_asked(policy):
    request = request_with("allow_once", "reject_always")

    assert Decisions(policy, False).answer(request) == "reject_always"
    assert Decisions(policy, True).answer(request) is None


def test_the_decision_of_a_person_is_given_once():
    decisions = Decisions("ask", True, {WRITE.mark: ChosenOption("allow", "allow_once")})

    assert [decisions.answer(WRITE), decisions.answer(WRITE)] == ["allow", None]


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (["reject_once", "allow_once", "allow_always"], "allow_once"),
        (["reject_once", "allow_always"], "allow_always"),
        (["reject_once"], ""),
    ],
)
def test_an_answer_for_the_conversation_chooses_an_option_of_its_side(kinds, expected):
    request = request_with(*kinds)

    assert Decisions("ask", True, always={request.mark: "allow_always"}).answer(request) == expected


def test_an_option_with_the_same_id_and_another_kind_is_not_the_chosen_one():
    reversed_options = (PermissionAnswer("reject", "Reject", "allow_once"), PermissionAnswer("x", "X", "reject_once"))

    assert replace(WRITE, options=reversed_options).option_like(ChosenOption("reject", "reject_once")) == "x"
    assert WRITE.option_like(ChosenOption("reject", "reject_once")) == "reject"
    assert WRITE.option_like(ChosenOption()) == ""


def test_the_chosen_one_of_several_options_of_a_kind_is_given():
    options = (PermissionAnswer("a", "In A", "allow_once"), PermissionAnswer("b", "In B", "allow_once"))

    assert replace(WRITE, options=options).option_like(ChosenOption("b", "allow_once")) == "b"


def test_requests_are_equal_if_they_do_the_same():
    two = replace(WRITE, paths=("a", "b"))

    assert two.mark == replace(two, paths=("b", "a")).mark
    assert two.mark == replace(two, options=()).mark
    changed = [{"kind": "execute"}, {"title": "Other"}, {"paths": ("a",)}, {"change": {"a.txt": "other"}}]
    assert len({two.mark, *(replace(two, **fields).mark for fields in changed)}) == 5


# --- Stored decisions


@pytest.fixture
def run(db):
    return RunFactory(agent=AgentFactory(), thread=add_thread(UserFactory()), owner_id="support")


def decided(run, option="allow", request=WRITE, **fields):
    """Store a request of the agent `worker` and the answer of a person."""
    data = {"outcome": "selected", "optionId": option}
    values = {"kind": PendingCall.Kind.SUSPEND, "state": PendingCall.State.RESUMED, "resume_data": data, **fields}
    values = {"root_id": run.pk, "segment": 0, "call_id": "c", "payload": request.payload("worker"), **values}
    return RefundCallFactory(run=run, **values)


def test_the_latest_decision_about_equal_requests_counts(run):
    decided(run, "reject", segment=1)
    decided(run, "allow", segment=0)

    assert load_permission_answers(run.pk, "") == {WRITE.mark: ChosenOption("reject", "reject_once")}


def test_only_the_decisions_of_one_call_count_for_it(run):
    other = write_request("b.txt", "hello")
    decided(run, call_id="c")
    decided(run, "reject", other, call_id="d")
    decided(RunFactory(agent=run.agent), call_id="c", request=write_request("c.txt", ""))

    assert [*load_permission_answers(run.pk, "c")] == [WRITE.mark]
    assert {*load_permission_answers(run.pk, "")} == {WRITE.mark, other.mark}


@pytest.mark.parametrize(
    "fields",
    [
        {"state": PendingCall.State.OPEN, "resume_data": None},
        {"state": PendingCall.State.CANCELLED},
        {"kind": PendingCall.Kind.APPROVAL},
    ],
)
def test_a_request_that_nobody_answered_has_no_decision(run, fields):
    decided(run, **fields)

    assert load_permission_answers(run.pk, "") == {}


@pytest.mark.parametrize(
    "fields",
    [
        {"state": PendingCall.State.EXPIRED},
        {"state": PendingCall.State.DECLINED},
        {"resume_data": {"outcome": "cancelled", "optionId": "allow"}},
        {"resume_data": {"outcome": "selected", "optionId": "unknown"}},
        {"resume_data": "allow"},
    ],
)
def test_an_answer_without_an_option_allows_nothing(run, fields):
    decided(run, **fields)

    assert load_permission_answers(run.pk, "") == {WRITE.mark: ChosenOption()}


@pytest.fixture
def always(db):
    """Return a request that may be answered for a whole conversation, with a long title."""
    create_agent()
    options = (PermissionAnswer("always", "Always", "allow_always"), PermissionAnswer("once", "Once", "allow_once"))
    return replace(WRITE, title="x" * 300, options=options)


def test_an_answer_for_always_counts_for_one_agent_team_and_conversation(run, always):
    child = RunFactory(agent=run.agent, parent=run, root_id=run.pk, owner_id="other")
    remember_always(decided(child, "always", always, root_id=run.pk, decided_by_name="ann"))

    row = AcpPermission.objects.get()
    assert (row.title, row.decided_by_name) == ("x" * 200, "ann")
    other = create_agent(key="other")
    place = (row.agent_id, "support", run.thread_id)
    assert load_always(*place) == {always.mark: "allow_always"}
    for elsewhere in ((other.pk, *place[1:]), (row.agent_id, "other", run.thread_id), (*place[:2], run.thread_id + 1)):
        assert load_always(*elsewhere) == {}
    assert load_always(row.agent_id, "support", None) == {}


def test_a_later_answer_for_always_replaces_the_earlier_one(run, always):
    refusing = replace(always, options=(PermissionAnswer("never", "Never", "reject_always"),))
    remember_always(decided(run, "always", always))
    remember_always(decided(run, "never", refusing, segment=1))

    assert AcpPermission.objects.get().option_kind == "reject_always"


@pytest.mark.parametrize(
    "fields",
    [
        {"option": "once"},
        {"state": PendingCall.State.EXPIRED},
        {"payload": {"question": "Which size?"}},
        {"payload": None},
        {"root_id": uuid7()},
    ],
)
def test_another_answer_is_not_remembered(run, always, fields):
    remember_always(decided(run, **{"option": "always", "request": always, **fields}))

    assert not AcpPermission.objects.exists()


def test_an_answer_without_a_conversation_is_not_remembered(always):
    run = RunFactory()

    remember_always(decided(run, "always", always))

    assert not AcpPermission.objects.exists()
