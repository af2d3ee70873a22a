"""Killing processes again and again while they execute many runs."""

import random

import pytest
from django.db.models import Count, Q

from runs_app.models import AgentRun
from tests.conftest import DRILL
from tests.durable.test_crash import assert_complete
from tests.served import wait_until

KILLS = 100 if DRILL else 3
RUNS = 20 if DRILL else 5
CALLS = 10


def done_steps():
    """Return how many steps each unfinished run has done."""
    done = Count("steps", filter=Q(steps__state="done"))
    return dict(AgentRun.objects.unfinished().annotate(done=done).values_list("pk", "done"))


def wait_for_progress(before):
    """Wait until each of these runs has done another step, or has ended."""

    def has_progress():
        now = done_steps()
        return all(pk not in now or now[pk] > count for pk, count in before.items())

    wait_until(has_progress, 120, "another step of every run")


@pytest.mark.drill
def test_no_run_is_lost_and_no_finished_step_repeats(engine, settings):
    settings.RUNS_PER_USER = settings.RUNS_PER_AGENT = RUNS
    processes = [engine.start_process(), engine.start_process()]
    plan = [*([["count", {"number": number, "pause": 0.2}]] for number in range(CALLS)), "Done."]
    runs = []
    for kill in range(KILLS):
        for _ in range(RUNS - AgentRun.objects.unfinished().count()):
            runs.append(engine.start(plan, text=f"Run {len(runs)}"))
        victim = random.randrange(2)
        engine.kill(processes[victim])
        processes[victim] = engine.start_process()
        if kill % 2:  # a run whose process dies three times at one step fails, as it should
            wait_for_progress(done_steps())

    for run in runs:
        done = engine.finish(run, 120)
        assert (done.status, done.error) == ("succeeded", "")
        assert_complete(done)
        assert done.steps.filter(kind="tool", state="done").count() == CALLS
