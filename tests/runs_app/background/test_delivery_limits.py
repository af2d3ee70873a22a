"""Results that cannot all be delivered to their conversation at once."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memory_app.history import messages
from memory_app.models import Message
from runs_app.background import delivery
from runs_app.background.delivery import deliver_due
from runs_app.background.dispatch import depth_of
from runs_app.engine import run_ends
from runs_app.models import AgentRun, BackgroundTask, BackgroundTaskDelivery
from tests.factories import AgentFactory, member
from tests.memory_app.conftest import add_thread
from tests.runs import DEMO, wait_for_end
from tests.runs_app.background.test_api import task_of
from tests.runs_app.factories import RunFactory
from tests.served import wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("idle_engine")]

AGO = timezone.timedelta(minutes=1)


@pytest.fixture
def user():
    return member("editor")


def ended_task(run, number, **values):
    columns = {"status": "completed", "result": f"result {number}", "is_delivery_due": True, "number": number}
    return task_of(run, call_key=f"c{number}", finished_at=timezone.now() - AGO, **columns, **values)


@pytest.fixture
def agent():
    """Return an agent that cannot run without a variable."""
    schema = {"type": "object", "properties": {"plan": {"type": "string"}}, "required": ["plan"]}
    instructions = "The guest has the plan {{plan}}."
    return AgentFactory(model=DEMO, memory="last-messages", instructions=instructions, request_context_schema=schema)


def run_in_thread(agent, user, **values):
    return RunFactory(agent=agent, requested_by=user, thread=add_thread(user), **values)


def last_event(run):
    return run.events.last().data["type"]


def test_results_become_events_without_a_read_of_the_conversation(user):
    run = RunFactory(agent=AgentFactory(), requested_by=user)
    ended_task(run, 1)

    with CaptureQueriesContext(connection) as queries:
        deliver_due()

    assert last_event(run) == "background-task-completed"
    assert not [query for query in queries if '"conversation"' in query["sql"].partition(" FROM ")[0]]


def test_results_are_delivered_as_far_as_signals_may_wait(user, settings):
    settings.SIGNALS_UNSEEN = 3
    run = run_in_thread(AgentFactory(model=DEMO, memory="last-messages"), user)
    for number in range(5):
        ended_task(run, number, thread=run.thread)

    deliver_due()

    # The first one wakes a run, which sees it.
    assert BackgroundTaskDelivery.objects.count() == Message.objects.filter(role="signal").count() == 4
    assert [task.number for task in BackgroundTask.objects.undelivered()] == [4]
    wait_until(lambda: not AgentRun.objects.unfinished().exists(), 30, "the end of the woken runs")


def test_the_woken_run_has_the_request_context_of_the_run_whose_result_it_reads(user, agent):
    run_input = {"messages": [{"role": "user", "content": "Begin"}], "requestContext": {"plan": "gold"}}
    run = run_in_thread(agent, user, input=run_input)
    ended_task(run, 1, thread=run.thread)

    deliver_due()

    woken = wait_for_end(AgentRun.objects.exclude(pk=run.pk).get())
    assert (woken.status, woken.request_context) == ("succeeded", {"plan": "gold"})
    assert "plan gold" in woken.filled_instructions


def test_a_result_that_can_wake_no_run_becomes_an_event_and_holds_up_no_others(user, agent):
    run, other = run_in_thread(agent, user), RunFactory(agent=agent, requested_by=user)
    ended_task(run, 1, thread=run.thread)
    ended_task(other, 2)

    deliver_due()

    assert last_event(run) == last_event(other) == "background-task-completed"
    assert not BackgroundTask.objects.undelivered().exists()


def test_an_unexpected_error_with_a_result_holds_up_no_others(user, monkeypatch):
    agent = AgentFactory(model=DEMO)
    broken, other = (RunFactory(agent=agent, requested_by=user) for _ in range(2))
    ended_task(broken, 1)
    ended_task(other, 1)
    deliver_to_run = delivery.deliver_to_run

    def fail_for_one(run_id):
        if run_id == broken.pk:
            raise ValueError("a bug")
        return deliver_to_run(run_id)

    monkeypatch.setattr(delivery, "deliver_to_run", fail_for_one)

    deliver_due()

    assert last_event(other) == "background-task-completed"
    assert [task.run_id for task in BackgroundTask.objects.undelivered()] == [broken.pk]


def test_countless_results_of_a_run_that_works_hold_up_no_others(user):
    agent = AgentFactory(model=DEMO)
    busy = RunFactory(agent=agent, requested_by=user, open=True)
    for number in range(delivery.MAX_RUNS_PER_ROUND):
        ended_task(busy, number)
    other = RunFactory(agent=agent, requested_by=user)
    ended_task(other, 1)

    deliver_due()

    assert last_event(other) == "background-task-completed"


def test_runs_that_work_hold_up_no_results_of_others(user, monkeypatch):
    monkeypatch.setattr(delivery, "MAX_RUNS_PER_ROUND", 2)
    agent = AgentFactory(model=DEMO)
    for busy in RunFactory.create_batch(2, agent=agent, requested_by=user, open=True):
        ended_task(busy, 1)
    other = RunFactory(agent=agent, requested_by=user)
    task = ended_task(other, 1)
    BackgroundTask.objects.filter(pk=task.pk).update(finished_at=timezone.now() - AGO / 2)

    for _ in range(40):  # each looks after two of three runs, which it chooses at random
        deliver_due()

    assert last_event(other) == "background-task-completed"


def test_the_result_of_a_participant_comes_in_no_other_name(user, agent):
    run = run_in_thread(agent, user)
    theirs = {"messages": [{"role": "user", "content": "Begin"}], "requestContext": {"plan": "gold"}}
    other = RunFactory(agent=agent, requested_by=member("editor"), thread=run.thread, input=theirs)
    task = ended_task(other, 1, thread=run.thread)

    assert delivery.deliver_results(run.pk) == 0
    assert delivery.deliver_results(other.pk) == 1

    woken = wait_for_end(AgentRun.objects.exclude(pk__in=[run.pk, other.pk]).get())
    signal = Message.objects.get(role="signal")
    assert (signal.author, woken.requested_by) == (other.requested_by, other.requested_by)
    assert (woken.request_context, task.delivery.woken_run_id) == ({"plan": "gold"}, woken.pk)


def test_a_result_that_came_too_late_for_the_active_run_is_known_to_have_woken_the_next(user):
    agent = AgentFactory(model=DEMO, memory="last-messages")
    run = run_in_thread(agent, user, open=True, lease_until=timezone.now() - AGO, holder="x:1:y")
    task = ended_task(run, 1, thread=run.thread, depth=2)
    delivery.deliver_results(run.pk)
    before = task.delivery.woken_run_id

    run_ends.end_lost_run(run.pk)

    woken = wait_for_end(AgentRun.objects.exclude(pk=run.pk).get())
    task.delivery.refresh_from_db()
    assert (before, task.delivery.woken_run_id) == (None, woken.pk)
    assert depth_of(woken) == 2


@pytest.mark.parametrize("key", ["background-task-", "background-task-1", "s1"])
def test_the_signal_of_a_person_is_of_no_task(key):
    assert delivery.task_of_signal(key) is None


def test_a_result_for_a_full_thread_becomes_an_event(user, monkeypatch):
    run = run_in_thread(AgentFactory(model=DEMO, memory="last-messages"), user)
    monkeypatch.setattr(messages, "MAX_THREAD_MESSAGES", run.thread.messages.count())
    ended_task(run, 1, thread=run.thread)

    deliver_due()

    assert last_event(run) == "background-task-completed"
