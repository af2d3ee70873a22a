"""Killing the worker while it runs an experiment: no item is lost, none is counted twice."""

import random
import time
from datetime import timedelta

import psutil
from django.db.models import Sum
from django.utils import timezone

from evals_app.models import Experiment, ExperimentResult
from runs_app.engine.run_ends import LOST_MESSAGE
from runs_app.models import AgentRun
from tests.conftest import DRILL
from tests.evals_app.experiment_runs import make_dataset, new_experiment
from tests.factories import AgentFactory
from tests.served import wait_until

ITEMS, KILLS = (500, 10) if DRILL else (24, 2)
CONCURRENCY = 10
TALKS = {"provider": "demo", "name": "echo", "delay": 0.02}  # a fifth of a second per answer
ANSWER = "I am the demo model 'echo'. You said: Question {}"
PATIENCE = 1 + 30  # seconds after a kill: JOB_LEASE + 30


def kill_worker(engine, process):
    """Kill a worker without a word to anybody. The next one takes its place."""
    if engine.name == "process":  # that forks the next worker
        for child in psutil.Process(process.pid).children():
            child.kill()
        return process
    engine.kill(process)
    return engine.start_process()


def expire_leases(holders):
    """Let the leases of dead processes end now. A drill waits for them."""
    past = timezone.now() - timedelta(seconds=1)
    AgentRun.objects.filter(holder__in=holders, finished_at=None).update(lease_until=past)


def test_killing_the_worker_loses_no_item_and_counts_none_twice(task_engine):
    engine, process = task_engine, task_engine.start_process()
    items = [{"input": f"Question {n}", "ground_truth": ANSWER.format(n)} for n in range(ITEMS)]
    dataset = make_dataset(*items, scorer_keys=["exact"])
    experiment = new_experiment(
        dataset, engine.user, AgentFactory(model=TALKS, instructions=""), maxConcurrency=CONCURRENCY
    )
    done = experiment.results.filter(state=ExperimentResult.State.DONE)
    for kill in range(1, KILLS + 1):
        wait_until(lambda: done.count() >= kill * ITEMS // (KILLS + 1), PATIENCE, f"kill {kill}; {engine.log()}")  # noqa: B023
        time.sleep(random.uniform(0, 0.3))
        holders = {*AgentRun.objects.leased().values_list("holder", flat=True)}
        process = kill_worker(engine, process)
        if not DRILL:
            expire_leases(holders)

    wait_until(lambda: Experiment.objects.get().is_finished, PATIENCE + 60, f"the end; {engine.log()}")

    experiment.refresh_from_db()
    runs = AgentRun.objects.filter(experiment_id=experiment.pk)
    lost = runs.filter(status="failed", error=LOST_MESSAGE)
    assert (experiment.status, experiment.succeeded_count, experiment.failed_count) == ("completed", ITEMS, 0)
    assert {*done.values_list("item_id", flat=True)} == {*dataset.items.values_list("pk", flat=True)}
    assert done.count() == runs.filter(status="succeeded").count() == ITEMS
    assert runs.count() == ITEMS + lost.count()
    assert done.aggregate(total=Sum("retry_count"))["total"] == lost.count() <= KILLS * CONCURRENCY
    assert experiment.summary["scorers"]["exact"]["mean"] == 1.0
    assert experiment.summary["scorers"]["exact"]["count"] == ITEMS
