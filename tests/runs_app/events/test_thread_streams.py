"""Position of the reader of a thread, and the runs that wake it."""

import threading
from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from memory_app.models import Participant, Thread
from memory_app.realms import memory_caller
from runs_app.events.notifications import notifier, thread_channel
from runs_app.events.streams import StreamSlot
from runs_app.events.thread_streams import RunSubscriptions, ThreadReader, ThreadStream
from runs_app.frequent_queries import MAX_EVENTS_PER_READ
from runs_app.models import RunEvent
from tests.factories import AgentFactory, UserFactory, member
from tests.runs_app.factories import PendingCallFactory, RunFactory

pytestmark = pytest.mark.django_db

OWNER = "support"


@pytest.fixture
def colleague():
    return member("publisher", OWNER)


@pytest.fixture
def thread(colleague):
    thread = Thread.objects.create(key="t", user=UserFactory(), agent=AgentFactory(owner_id=OWNER))
    Participant.objects.create(thread=thread, user=colleague, name="Bo")
    return thread


@pytest.fixture
def make_run(thread):
    return lambda **fields: RunFactory(agent=thread.agent, thread=thread, **fields)


@pytest.fixture
def reader(thread, colleague):
    reader = ThreadReader(thread, memory_caller(colleague))
    reader.begin()
    return reader


def add_events(run, kind, count):
    """Append events of one type to a run."""
    first = run.events.count() + 1
    chunk = {"type": kind, "payload": {"id": "1", "text": "word "}}
    RunEvent.objects.bulk_create(
        RunEvent(run=run, number=number, type="chunk", data=chunk) for number in range(first, first + count)
    )


def test_runs_that_ended_long_before_are_not_remembered(make_run, thread, colleague):
    make_run(finished_at=timezone.now() - timedelta(hours=1))
    recent = make_run(finished_at=timezone.now())
    reader = ThreadReader(thread, memory_caller(colleague))

    reader.begin()

    assert reader.done == {recent.pk}
    assert reader.read() == ([], False)


def test_a_run_whose_end_came_late_is_read(make_run, reader):
    """The clocks of two machines may differ."""
    make_run(finished_at=reader.began_at - timedelta(seconds=10), chunks=[("start", {}), ("finish", {})])

    blocks, has_more = reader.read()

    assert (len(blocks), has_more) == (2, True)
    assert reader.read() == ([], False)


def test_many_events_are_read_at_once_but_sent_in_parts(make_run, reader):
    run = make_run(open=True, chunks=[])
    add_events(run, "text-delta", MAX_EVENTS_PER_READ + 10)

    parts = [reader.read(), reader.read()]

    assert [(len(blocks), has_more) for blocks, has_more in parts] == [(MAX_EVENTS_PER_READ, True), (10, False)]


def test_another_run_is_read_while_one_waits_for_people(make_run, reader):
    waiting = make_run(suspended=True, chunks=[("suspended", {})])
    PendingCallFactory(run=waiting)
    reader.read()
    later = make_run(open=True, chunks=[("start", {})])
    blocks, _ = reader.read()

    assert str(later.pk).encode() in blocks[0]
    assert reader.unfinished_ids() == {waiting.pk, later.pk}


def test_the_details_of_a_run_end_with_the_role_of_their_reader(make_run, reader, colleague):
    run = make_run(open=True, chunks=[("start", {}), ("step-start", {})])
    seen = len(reader.read()[0])
    colleague.memberships.update(role="editor")
    add_events(run, "tool-call", 1)
    add_events(run, "text-delta", 1)

    blocks, _ = reader.read()

    assert seen == 2
    assert [b"text-delta" in block for block in blocks] == [True]


def test_only_unfinished_runs_wake_a_reader():
    woken = threading.Event()
    subscriptions = RunSubscriptions(woken)
    first, second = uuid4(), uuid4()

    assert subscriptions.follow({first})
    assert subscriptions.follow({first, second})
    assert not subscriptions.follow({second})
    notifier.wake(str(first))
    assert not woken.is_set()
    notifier.wake(str(second))
    assert woken.is_set()
    subscriptions.follow(set())
    assert not {str(first), str(second)} & notifier.readers.keys()


def test_a_closed_stream_has_no_subscriptions(make_run, thread, colleague):
    run = make_run(open=True, chunks=[("start", {})])
    stream = ThreadStream(thread, memory_caller(colleague), StreamSlot(colleague))
    blocks = iter(stream)

    assert b"start" in next(blocks) + next(blocks)
    assert str(run.pk) in notifier.readers
    stream.close()

    assert not {str(run.pk), thread_channel(thread.pk)} & notifier.readers.keys()
