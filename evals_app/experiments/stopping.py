"""Experiments that end before all their items are done: their open runs are stopped, and their results stored."""

from __future__ import annotations

import logging
import time

from django.utils import timezone

from evals_app.experiments.ending import CANCELLED_MESSAGE, EXPERIMENT_JOB, finish_experiment, mark_cancelled
from evals_app.experiments.results import next_open_results, store_stopped
from evals_app.experiments.running.scoring_loop import ScoringLoop
from evals_app.models import Experiment, ExperimentResult
from jobs_app import runner
from jobs_app.models import Job
from runs_app.engine import run_ends
from runs_app.models import AgentRun

log = logging.getLogger(__name__)

STOP_SECONDS = 5.0  # to wait for the end of stopped runs: only then it is known what they have cost
STOP_POLL_INTERVAL = 0.1  # seconds


def request_cancel(experiment: Experiment) -> None:
    """Start no further item and stop the open runs. The job of the experiment ends it; without a job it ends now.

    A command in the foreground has no job, and may have been killed. A job that waits for a slot is sent again,
    because it needs no slot to end the experiment. Raise ApiError if the experiment was deleted meanwhile.
    """
    if not mark_cancelled(experiment):
        return
    jobs = Job.objects.unfinished().filter(kind=EXPERIMENT_JOB, parameters__experiment=str(experiment.pk))
    if (job := jobs.only("pk", "state").first()) is None:
        end_early(experiment, Experiment.Status.CANCELLED, CANCELLED_MESSAGE)
        return
    stop_runs(experiment)
    if job.state == Job.State.QUEUED:
        runner.send_job(job.pk)


def end_early(experiment: Experiment, status: str, reason: str = "", scoring: ScoringLoop | None = None) -> None:
    """End an experiment whose runs may not have ended. They are stopped, and their items count as failed.

    `scoring` has the answers that are scored already. Raise ApiError if it was deleted meanwhile.
    """
    stop_runs(experiment)
    loop = scoring or ScoringLoop(experiment.concurrency)
    try:
        store_ended_results(experiment, loop)
    finally:
        loop.close()
    end_at_once(experiment, status, reason)


def end_at_once(experiment: Experiment, status: str, reason: str = "") -> None:
    """End an experiment without a wait for its open runs, which are stopped. Their items count as failed.

    Raise ApiError if it was deleted meanwhile.
    """
    finish_experiment(experiment, status, reason, stops_open=True)
    stop_runs(experiment)  # with those of items that started meanwhile


def stop_runs(experiment: Experiment) -> None:
    """Stop the unfinished runs of an experiment."""
    runs = AgentRun.objects.unfinished().filter(experiment_id=experiment.pk, parent=None, cancel_requested_at=None)
    # In the order in which everybody locks several runs: the transaction of a deletion holds them all.
    for run in runs.order_by("pk"):
        run_ends.cancel_run(run.pk)


def store_ended_results(experiment: Experiment, scoring: ScoringLoop) -> None:
    """Store the results of open runs and calls as they end. Wait a few seconds for them."""
    deadline = time.monotonic() + STOP_SECONDS
    while open_results := next_open_results(experiment):
        for result in open_results:
            result.experiment = experiment
            store_if_ended(result, scoring)
        if time.monotonic() > deadline:
            return
        scoring.pause(STOP_POLL_INTERVAL)


def store_if_ended(result: ExperimentResult, scoring: ScoringLoop) -> None:
    """Score a result if its run has ended, and store it once it is scored. A call stores its result itself."""
    run = result.run
    if run is None:
        return
    if run.status in AgentRun.UNFINISHED_STATUSES:
        end_stuck_run(run)
        return
    try:
        if result.pk in scoring.open:
            scoring.store_if_scored(result.pk)
        elif not scoring.is_full:
            scoring.submit(result, run)
    except Exception as error:  # whose message may quote the answer
        log.warning("The result of item %s could not be scored: %s.", result.item_id, type(error).__name__)
        store_stopped(result)


def end_stuck_run(run: AgentRun) -> None:
    """End an unfinished run whose process died, and one that waits for a person."""
    if run.status == AgentRun.Status.SUSPENDED:
        run_ends.cancel_run(run.pk)
    elif run.lease_until is not None and run.lease_until < timezone.now() and not run.is_durable:
        run_ends.end_lost_run(run.pk)
