"""Killing processes again and again while they execute many runs."""

import random

import pytest

from runs_app.models import AgentRun
from tests.conftest import DRILL
from tests.durable.test_crash import assert_complete
from tests.served import wait_until

KILLS = 100 if DRILL else 3
RUNS = 20 if DRILL else 5
CALLS = 10


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
        wait_until(lambda: AgentRun.objects.filter(status="queued").count() <= RUNS, 60, f"kill {kill}")

    for run in runs:
        done = engine.finish(run, 120)
        assert (done.status, done.error) == ("succeeded", "")
        assert_complete(done)
        assert done.steps.filter(kind="tool", state="done").count() == CALLS
