"""A worker that is killed while it observes: nothing is lost, and nothing is stored twice."""

import os
import random
import signal
from datetime import timedelta

import pytest
from django.db import connection, connections
from django.db.models.signals import post_save
from django.utils import timezone

from jobs_app.models import Job
from jobs_app.runner import enqueue, run_claimed
from memory_app.models import Message, Observation, Thread
from memory_app.observational.jobs import OBSERVE_THREAD
from memory_app.observational.log import load_log, tokens_after
from runs_app.memory import observing
from tests.conftest import DRILL
from tests.factories import AgentFactory
from tests.memory_app.observational.conftest import append, turns

pytestmark = pytest.mark.django_db(transaction=True)

KILLS = 50 if DRILL else 6
TURNS = 24 if DRILL else 4  # in each round
MEMORY = {
    "options": {},
    "observationalMemory": {"observation": {"messageTokens": 200}, "reflection": {"observationTokens": 120}},
}


def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)


def die_before_the_answer():
    observing.demo_answer = die


def die_before_the_commit():
    post_save.connect(die, sender=Observation, weak=False)


def die_after_the_commit():
    Job.report_progress = die


WAYS_TO_DIE = (die_before_the_answer, die_before_the_commit, die_after_the_commit)


def run_and_kill(job, arm):
    """Run a job in another process, which dies when `arm` says."""
    connections.close_all()
    if connection.vendor == "postgresql":
        connection.close_pool()
    process_id = os.fork()
    if process_id == 0:
        try:
            arm()
            run_claimed(str(job.pk))
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(process_id, 0)[1])


def assert_contiguous(thread):
    log = load_log(thread.pk)
    rows = [*log.active, *log.buffered]
    assert [row.first for row in rows] == [1, *(row.last + 1 for row in rows)][: len(rows)]
    assert log.tokens <= 144


def test_nothing_is_lost_and_nothing_is_observed_twice():
    agent = AgentFactory(id="concierge", model={"provider": "demo", "name": "echo"}, memory=MEMORY)
    agent.refresh_from_db()
    thread = Thread.objects.create(key="t", realm="u1", agent=agent, agent_key=agent.pk)
    choose = random.Random(7)
    job = enqueue(OBSERVE_THREAD, {"thread": thread.pk, "run": None})
    for _ in range(KILLS):
        append(Thread.objects.get(), *turns(TURNS, 20))
        Job.objects.filter(pk=job.pk).update(state=Job.State.QUEUED, attempts=1)

        assert run_and_kill(job, choose.choice(WAYS_TO_DIE)) == -signal.SIGKILL

        assert_contiguous(thread)
        assert Thread.objects.get().observing_until > timezone.now()  # as the process has left it
        past = timezone.now() - timedelta(seconds=1)
        Job.objects.filter(pk=job.pk).update(lease_until=past, attempts=1)

    done = run_claimed(str(job.pk))

    assert (done.state, done.error) == ("done", "")
    assert_contiguous(thread)
    assert tokens_after(thread.pk, load_log(thread.pk).observed_until) < 40
    assert Thread.objects.get().observing_until is None
    assert Message.objects.count() == KILLS * TURNS * 2
