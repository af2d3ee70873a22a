"""Lookup of the call that a client means, also through the runs above it."""

from datetime import timedelta

import pytest

from runs_app.approvals.errors import NotSuspended, SeveralCalls
from runs_app.approvals.lookup import find_call, waiting_calls_below, waits_for_people
from runs_app.models import AgentRun, BackgroundTask, PendingCall
from runs_app.models.pending_call import stored_call_id
from tests.runs_app.factories import PendingCallFactory, RunFactory

pytestmark = pytest.mark.django_db


def suspended_run(**fields):
    return RunFactory(suspended=True, chunks=[], **fields)


def child_of(run, call_id, **values):
    """Return a child run that waits, with the call of its parent that waits for it."""
    child = suspended_run(parent=run, root_id=run.root_id)
    PendingCallFactory(run=run, call_id=call_id, kind="child", payload={"childRunId": str(child.pk)}, **values)
    return child


def deferred_call_of(run, task_call_id):
    """Return a call with the ID "leaf" of the sub-agent that a deferred task of a run has started."""
    child = suspended_run(parent=run, root_id=run.root_id, parent_call_id=task_call_id)
    BackgroundTask.objects.create(
        run=run,
        tool="agent-helper",
        call_id=task_call_id,
        call_key=task_call_id,
        child_run_id=child.pk,
        number=BackgroundTask.objects.count(),
        timeout_ms=1,
    )
    return PendingCallFactory(run=child, call_id="leaf")


@pytest.fixture
def root():
    return suspended_run()


def test_the_only_call_needs_no_id(root):
    call = PendingCallFactory(run=root)

    assert find_call(root, None) == find_call(root, call.call_id) == call


def test_several_calls_are_named(root):
    calls = [PendingCallFactory(run=root, call_id=name) for name in "ab"]

    with pytest.raises(SeveralCalls) as raised:
        find_call(root, None)

    assert raised.value.call_ids == ["a", "b"]
    assert find_call(root, "b") == calls[1]


def test_a_long_id_is_known_as_the_model_gave_it(root):
    """The chunk of the call has it. Rows have its hash, as the chunk that says that the call waits."""
    long_id = "call_" + "a" * 200
    call = PendingCallFactory(run=root, call_id=stored_call_id(long_id))
    PendingCallFactory(run=root, call_id="other")

    assert find_call(root, long_id) == find_call(root, call.call_id) == call
    PendingCall.objects.filter(pk=call.pk).update(state="approved", decided_at=call.created_at)
    assert find_call(root, long_id) == call


def test_the_call_that_waits_longest_comes_first(root):
    own = PendingCallFactory(run=root, call_id="own")
    leaf = PendingCallFactory(run=child_of(root, "c"), call_id="leaf")
    PendingCall.objects.filter(pk=leaf.pk).update(created_at=own.created_at - timedelta(seconds=1))

    assert [one.call for one in waiting_calls_below(root)] == [leaf, own]


def test_a_decision_without_an_id_means_the_call_of_the_run_before_those_of_its_deferred_tasks(root):
    deferred = deferred_call_of(root, "task")
    own = PendingCallFactory(run=root, call_id="own")

    assert find_call(root, None) == own
    assert find_call(root, "task") == find_call(root, "leaf") == deferred


def test_a_decision_that_is_repeated_without_an_id_decides_no_call_of_a_deferred_task(root):
    deferred = deferred_call_of(root, "task")
    own = PendingCallFactory(run=root, call_id="own", state="approved")

    assert find_call(root, None) == own
    assert find_call(root, "task") == deferred


def test_without_other_calls_a_decision_without_an_id_means_the_only_one_of_a_deferred_task(root):
    deferred = deferred_call_of(root, "task")

    assert find_call(root, None) == deferred
    deferred_call_of(root, "other")
    with pytest.raises(SeveralCalls) as raised:
        find_call(root, None)
    assert raised.value.call_ids == ["task", "other"]


def test_a_run_that_waits_for_nothing_and_an_unknown_id_are_errors(root):
    with pytest.raises(NotSuspended):
        find_call(root, None)
    with pytest.raises(NotSuspended):
        find_call(root, "unknown")


@pytest.mark.parametrize(
    "call_id", [None, "ask", "ask/inner", "ask/inner/leaf", "inner", "inner/leaf", "leaf", "ask/leaf"]
)
def test_a_call_two_levels_below_is_found_by_each_of_its_ids(root, call_id):
    child = child_of(root, "ask")
    leaf = PendingCallFactory(run=child_of(child, "inner"), call_id="leaf")

    assert find_call(root, call_id) == leaf
    assert [reachable.shown_id for reachable in waiting_calls_below(root)] == ["ask"]
    assert waits_for_people(root)


def test_a_child_that_waits_for_several_calls_is_ambiguous_by_the_id_of_its_call(root):
    child = child_of(root, "ask")
    calls = [PendingCallFactory(run=child, call_id=name) for name in "ab"]

    with pytest.raises(SeveralCalls) as raised:
        find_call(root, "ask")

    assert raised.value.call_ids == ["ask/a", "ask/b"]
    assert [find_call(root, name) for name in ("ask/a", "b")] == calls


@pytest.fixture
def short_names(root):
    """Return two calls two levels below, in runs of which each has calls with the IDs "a" and "b"."""
    child = child_of(root, "a")
    first, second = child_of(child, "a"), child_of(child, "b")
    PendingCallFactory(run=first, call_id="a")
    return PendingCallFactory(run=first, call_id="b"), PendingCallFactory(run=second, call_id="a")


def test_an_id_of_an_event_means_its_own_call_beside_shorter_names_of_others(root, short_names):
    """`a/b` is also short for the call `b` in the first run."""
    in_first, in_second = short_names

    assert [one.shown_id for one in waiting_calls_below(root)] == ["a/a/a", "a/a/b", "a/b"]
    assert find_call(root, "a/b") == in_second
    assert find_call(root, "a/a/b") == in_first


def test_a_repeated_decision_decides_no_call_with_the_same_shorter_name(root, short_names):
    in_second = short_names[1]
    PendingCall.objects.filter(pk=in_second.pk).update(state="approved", decided_at=in_second.created_at)

    assert find_call(root, "a/b") == in_second


def test_a_repeated_decision_finds_the_decided_call(root):
    first = PendingCallFactory(run=root, call_id="a", state="approved")
    waiting = PendingCallFactory(run=root, call_id="b")

    assert find_call(root, "a") == first
    assert find_call(root, None) == waiting
    again = PendingCallFactory(run=root, call_id="a", segment=1)
    assert find_call(root, "a") == again


def test_a_run_whose_child_works_waits_for_no_person(root):
    child_of(root, "ask")

    assert not waits_for_people(root)


@pytest.fixture
def equal_ids(root):
    """Return a call of a run and one of its sub-agent with the same ID: some servers number the calls of an answer."""
    own = PendingCallFactory(run=root, call_id="c0")
    return own, PendingCallFactory(run=child_of(root, "c1"), call_id="c0")


def test_a_call_of_the_run_comes_before_one_of_a_sub_agent_with_the_same_id(root, equal_ids):
    own, leaf = equal_ids

    assert [reachable.shown_id for reachable in waiting_calls_below(root)] == ["c0", "c1"]
    assert find_call(root, "c0") == own
    assert find_call(root, "c1") == find_call(root, "c1/c0") == leaf


def test_a_repeated_decision_decides_no_call_of_a_sub_agent_with_the_same_id(root, equal_ids):
    own, leaf = equal_ids
    PendingCall.objects.filter(pk=own.pk).update(state="approved")

    assert find_call(root, "c0") == own
    AgentRun.objects.filter(pk=root.pk).update(segment=1)
    root.refresh_from_db()
    assert find_call(root, "c0") == leaf


def test_a_repeated_decision_about_one_sub_agent_decides_no_call_of_another(root):
    first = PendingCallFactory(run=child_of(root, "c0"), call_id="c1")
    second = PendingCallFactory(run=child_of(root, "c1"), call_id="c0", state="approved")

    assert find_call(root, "c1") == second
    assert find_call(root, "c0") == first
