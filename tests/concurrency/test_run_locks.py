"""The order in which transactions lock runs and agents. In another order each could wait for the other."""

import time
from datetime import timedelta
from threading import Event

import pytest
from django.db import transaction
from django.utils import timezone

from agents_app.models import Agent
from evals_app.datasets.deletion import delete_experiment, delete_with_experiments
from memory_app.history.signal_markup import Signal
from memory_app.models import Message
from runs_app import scoring
from runs_app.engine import run_ends
from runs_app.models import AgentRun, ScorerCount
from runs_app.resolution import stored_agents
from runs_app.thread_signals import woken_runs
from runs_app.thread_signals.sending import IfActive, send_signal
from tests.concurrently import run_concurrently
from tests.evals_app.experiment_runs import make_dataset, new_experiment
from tests.factories import AgentFactory, member
from tests.memory_app.conftest import add_thread
from tests.runs_app.factories import RunFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres_only]  # SQLite locks no rows

HOUR = timedelta(hours=1)
PAUSE = 0.3  # seconds for which a transaction holds its first locks


@pytest.fixture
def agent():
    return AgentFactory()


def test_an_agent_is_deleted_while_the_end_of_its_run_counts_for_a_scorer(agent):
    run = RunFactory(agent=agent, open=True, chunks=[])
    is_locked = Event()

    def end():
        with transaction.atomic():
            AgentRun.objects.filter(pk=run.pk).lock_in_order()
            is_locked.set()
            time.sleep(PAUSE)
            return scoring.next_count(run, "tone")  # stores a row that refers to the agent

    answers = run_concurrently([end, lambda: is_locked.wait(10) and agent.delete()])

    assert answers[0] == 1, answers
    assert not isinstance(answers[1], Exception), answers
    assert not Agent.objects.exists()
    assert not ScorerCount.objects.exists()


def test_an_agent_is_deleted_while_its_runs_are(agent):
    runs = [RunFactory(agent=agent) for _ in range(2)]
    is_locked = Event()

    def delete_runs():
        with transaction.atomic():
            AgentRun.objects.filter(agent=agent).lock_in_order()
            is_locked.set()
            time.sleep(PAUSE)
            return AgentRun.objects.filter(pk__in=[run.pk for run in runs]).delete()[0]

    answers = run_concurrently([delete_runs, lambda: is_locked.wait(10) and agent.delete()])

    assert not any(isinstance(answer, Exception) for answer in answers), answers
    assert not AgentRun.objects.exists()


def test_an_experiment_is_deleted_while_its_runs_are_written():
    editor = member("editor")
    experiment = new_experiment(make_dataset("One"), editor, start=False)
    first, second = (RunFactory(experiment_id=experiment.pk, open=True, chunks=[]) for _ in range(2))
    is_locked = Event()

    def write():
        with transaction.atomic():
            for run in (first, second):
                AgentRun.objects.filter(pk=run.pk).lock_in_order()
                is_locked.set()
                time.sleep(PAUSE)

    answers = run_concurrently([write, lambda: is_locked.wait(10) and delete_experiment(experiment)])

    assert answers == [None, None]
    assert AgentRun.objects.filter(cancel_requested_at=None).count() == 0


def test_a_dataset_with_experiments_is_deleted_while_their_runs_are_written():
    editor, dataset = member("editor"), make_dataset("One")
    experiments = [new_experiment(dataset, editor, start=False) for _ in range(2)]
    _, second, third = (RunFactory(experiment_id=experiments[number].pk, open=True, chunks=[]) for number in (0, 1, 0))
    is_locked = Event()

    def write():
        with transaction.atomic():
            for run in (second, third):
                AgentRun.objects.filter(pk=run.pk).lock_in_order()
                is_locked.set()
                time.sleep(PAUSE)

    answers = run_concurrently([write, lambda: is_locked.wait(10) and delete_with_experiments(dataset)])

    assert answers == [None, None]
    assert AgentRun.objects.filter(cancel_requested_at=None).count() == 0


def test_the_next_agent_of_a_thread_is_deleted_while_a_run_ends(agent, monkeypatch):
    editor, following = member("editor"), AgentFactory()
    thread = add_thread(editor, texts=[], agent=agent)
    run = RunFactory(agent=agent, thread=thread, open=True, chunks=[], lease_until=timezone.now() + HOUR)
    send_signal(
        thread,
        Signal("user", "Go on"),
        user=editor,
        agent=stored_agents.get(following.pk),
        if_active=IfActive.QUEUE,
    )
    queue, is_starting = woken_runs.queue_run, Event()

    def queue_slowly(*args, **options):
        is_starting.set()
        time.sleep(PAUSE)
        return queue(*args, **options)

    monkeypatch.setattr(woken_runs, "queue_run", queue_slowly)

    def end():
        with transaction.atomic():
            run_ends.record_end(run_ends.lock_run(run.pk, AgentRun.objects.all()), status="succeeded", error="")

    answers = run_concurrently([end, lambda: is_starting.wait(10) and following.delete()])

    run.refresh_from_db()
    assert answers[0] is None, answers
    assert run.status == "succeeded"
    assert not AgentRun.objects.filter(agent_key=following.pk).exists()
    assert Message.objects.get(role="signal").delivery["error"] == woken_runs.DELETED_MESSAGE
