"""The order in which transactions lock runs and threads. In another order each could wait for the other."""

import time
from datetime import timedelta
from functools import partial
from threading import Event

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memory_app.history.threads import open_child_thread, transfer_thread
from memory_app.models import Message, Thread
from memory_app.realms import memory_caller
from runs_app import signals
from runs_app.approvals import suspending
from runs_app.engine import run_ends
from runs_app.events.pending_runs import WriteSnapshot
from runs_app.events.saving import save_snapshots
from runs_app.memory import thread_deletion
from runs_app.memory.thread_deletion import delete_threads
from runs_app.models import AgentRun
from runs_app.privacy import forgetting
from tests.api_client import Caller
from tests.concurrently import run_concurrently
from tests.factories import AgentFactory, api_key, member
from tests.memory_app.conftest import add_thread
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.django_db(transaction=True)

CALLS = 25
HOUR = timedelta(hours=1)
PAUSE = 0.3  # seconds for which a transaction holds its first lock


@pytest.fixture
def editor():
    return member("editor")


def save_often(key, threads, number):
    """Save messages of several threads in one request, and again. Return the status codes."""
    caller, codes = Caller(key), set()
    for call in range(CALLS):
        items = [
            {"id": f"{number}-{call}-{thread}", "threadId": thread, "role": "user", "content": "Hello"}
            for thread in threads
        ]
        codes.add(caller.post("/api/memory/save-messages", {"messages": items}).status_code)
    return codes


def test_messages_of_several_threads_are_saved_in_any_order(editor):
    keys = [f"t{number}" for number in range(6)]
    for key in keys:
        add_thread(editor, key, texts=[])
    key, orders = api_key(editor), [keys, keys[::-1], keys[3:] + keys[:3], keys[:3][::-1] + keys[3:]]

    answers = run_concurrently([partial(save_often, key, order, number) for number, order in enumerate(orders)])

    assert answers == [{200}] * len(orders)
    assert Message.objects.count() == len(orders) * len(keys) * CALLS
    assert {*Thread.objects.values_list("last_number", flat=True)} == {len(orders) * CALLS}


@pytest.fixture
def family(editor):
    """Return the thread of a run that waits for its sub-agent, and the run of that."""
    agent = AgentFactory()
    thread = add_thread(editor, texts=[], agent=agent)
    below = add_thread(editor, "below", texts=[], agent=agent, parent=thread)
    columns = {"agent": agent, "requested_by": editor, "suspended": True, "chunks": [], "resource": thread.resource}
    parent = RunFactory(thread=thread, **columns)
    child = RunFactory(thread=below, parent=parent, root_id=parent.pk, **columns)
    return thread, child


@pytest.fixture
def slow_ends(monkeypatch):
    """Let the end of a run that waited take time while its row is locked."""
    cancel = run_ends.cancel_calls
    monkeypatch.setattr(run_ends, "cancel_calls", lambda run_ids: (time.sleep(PAUSE), cancel(run_ids)))


@pytest.fixture
def slow_release(monkeypatch):
    """Let the deletion of an agent take time while it has locked the runs, and return the event of that moment."""
    release, began = signals.release_deleted_runs, Event()

    def release_slowly(runs):
        locked = [*runs]
        began.set()
        time.sleep(PAUSE)
        release(locked)

    monkeypatch.setattr(signals, "release_deleted_runs", release_slowly)
    return began


@pytest.mark.usefixtures("slow_ends")
def test_a_thread_is_deleted_while_the_run_of_a_sub_agent_ends(family):
    thread, child = family

    answers = run_concurrently(
        [lambda: run_ends.cancel_run(child.pk), lambda: time.sleep(PAUSE / 3) or delete_threads([thread.pk])]
    )

    assert answers == [True, 2]
    assert not Thread.objects.exists()
    assert [*AgentRun.objects.values_list("thread", flat=True)] == [None, None]


@pytest.fixture
def grandchild(family, monkeypatch):
    """Return a run two levels below the first one, which is about to wait for people. Its suspension takes time."""
    _, child = family
    columns = {"agent": child.agent, "open": True, "chunks": [], "holder": "here", "is_durable": True, "fence": 1}
    run = RunFactory(parent=child, root_id=child.root_id, lease_until=timezone.now() + HOUR, **columns)
    monkeypatch.setattr(suspending, "suspend_task_of_child", lambda run: time.sleep(PAUSE))
    return run


def suspend(run):
    """Let a run wait for a call, as its process does."""
    call = suspending.new_call(run, "c0", "refund", {}, kind="approval", **suspending.rule_columns({}))
    end = {"status": "suspended", "worked_ms": 0, "calls": [call]}
    with transaction.atomic():
        return save_snapshots({run.pk: WriteSnapshot(0, [], end, run.fence, parent_id=run.parent_id)}, run.holder)


def test_a_run_is_cancelled_while_its_sub_agent_begins_to_wait(grandchild):
    answers = run_concurrently(
        [
            lambda: suspend(grandchild),
            lambda: time.sleep(PAUSE / 3) or run_ends.cancel_run(grandchild.parent_id),
        ]
    )

    assert answers == [{grandchild.pk}, True]


def test_an_agent_is_deleted_while_its_run_ends(family, slow_release):
    _, child = family
    AgentRun.objects.filter(pk=child.pk).update(agent=AgentFactory())
    child.refresh_from_db()

    answers = run_concurrently([child.agent.delete, lambda: slow_release.wait(20) and run_ends.cancel_run(child.pk)])

    assert not any(isinstance(answer, Exception) for answer in answers), answers
    assert not AgentRun.objects.filter(pk=child.pk).exists()


def test_a_run_that_begins_between_the_locks_is_locked_too(family, monkeypatch):
    thread, child = family
    lock, late = thread_deletion.lock_threads, []

    def begin_before(thread_ids):
        if not late:
            late.append(RunFactory(agent=child.agent, thread=thread, chunks=[]))
        return lock(thread_ids)

    monkeypatch.setattr(thread_deletion, "lock_threads", begin_before)

    with CaptureQueriesContext(connection) as queries:
        assert delete_threads([thread.pk]) == 2

    locking = [query["sql"] for query in queries if "FOR UPDATE" in query["sql"] and "agentrun" in query["sql"]]
    assert len(locking) == (2 if connection.vendor == "postgresql" else 0)
    assert AgentRun.objects.get(pk=late[0].pk).thread is None


@pytest.mark.usefixtures("slow_ends")
def test_the_data_of_a_resource_is_deleted_while_the_run_of_a_sub_agent_ends(family):
    _, child = family
    digest, keys = "0" * 64, [*AgentRun.objects.values_list("pk", flat=True)]

    answers = run_concurrently(
        [
            lambda: run_ends.cancel_run(child.pk),
            lambda: time.sleep(PAUSE / 3) or forgetting.delete_with_children(AgentRun, keys, digest),
        ]
    )

    assert answers == [True, 2]
    assert not AgentRun.objects.exists()


def test_a_thread_moves_while_a_sub_agent_opens_one_below_it(editor):
    thread = add_thread(editor, "t", texts=[])
    is_open = Event()

    def open_child():
        with transaction.atomic():
            open_child_thread(thread, "helper")
            is_open.set()
            time.sleep(PAUSE)  # meanwhile, the other call has read what is below the thread

    def transfer():
        is_open.wait(10)
        transfer_thread(memory_caller(editor), Thread.objects.get(key="t"), "bob")

    assert run_concurrently([open_child, transfer]) == [None, None]

    assert [*Thread.objects.values_list("resource_key", flat=True)] == ["bob", "bob"]


def test_a_thread_that_a_sub_agent_opens_belongs_to_the_present_resource(editor):
    before = add_thread(editor, "t", texts=[])
    transfer_thread(memory_caller(editor), Thread.objects.get(key="t"), "bob")

    with transaction.atomic():
        child = open_child_thread(before, "helper")

    assert (child.resource_key, child.resource.key) == ("bob", "bob")
