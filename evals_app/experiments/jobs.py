"""The job that works on an experiment, a minute at a time.

It works for a minute at most and queues itself again. All it knows is in rows, so another worker continues it.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.utils import timezone
from kombu.exceptions import OperationalError as BrokerError
from redis.exceptions import RedisError

from agentcms.errors import ApiError, Unavailable
from evals_app.experiments import targets
from evals_app.experiments.ending import EXPERIMENT_JOB
from evals_app.experiments.running.item_loop import ItemLoop
from evals_app.experiments.running.scoring_loop import ScoringLoop
from evals_app.experiments.stopping import end_at_once, end_early, stop_runs
from evals_app.models import Experiment
from jobs_app import runner
from jobs_app.models import Job, LeaseLost
from jobs_app.slots import JobSlots

log = logging.getLogger(__name__)

# In seconds. Other jobs, such as the nightly ones, wait for the end of a slice, not for that of an experiment.
SLICE = 60.0
UNEXPECTED_MESSAGE = (
    "The experiment stopped after an unexpected error ({error}). The server log has the details. Results stay. "
    "Retry the failed items."
)
WITHOUT_JOB_MESSAGE = (
    "The job of the experiment was stopped or did not finish. Results stay. Retry the experiment to run what is "
    "missing."
)
experiment_slots = JobSlots(lambda: settings.EXPERIMENTS_PER_WORKER)
OUTAGES = (RedisError, BrokerError, ConnectionError, TimeoutError)  # of Valkey and the broker


def enqueue_experiment(experiment: Experiment) -> Job:
    """Enqueue the job of an experiment."""
    return runner.enqueue(EXPERIMENT_JOB, {"experiment": str(experiment.pk)}, requested_by=experiment.created_by)


def end_without_job(job: Job) -> None:
    """End the experiment of a job that was stopped or given up, unless another job works on it."""
    others = Job.objects.unfinished().filter(kind=EXPERIMENT_JOB, parameters=job.parameters)
    experiment = Experiment.objects.unfinished().filter(pk=job.parameters["experiment"]).first()
    if experiment is not None and not others.exists():
        end_at_once(experiment, Experiment.Status.FAILED, WITHOUT_JOB_MESSAGE)


@runner.job_handler(EXPERIMENT_JOB, "Experiment", end_without_job)
def run_experiment_job(job: Job) -> Any:
    """Run an experiment for a minute. If it has not ended then, another job continues it."""
    experiment = (
        Experiment.objects.select_related("dataset", "created_by").filter(pk=job.parameters["experiment"]).first()
    )
    if experiment is None or experiment.is_finished:
        return {"done": 0}
    if experiment.cancel_requested_at is not None:  # it ends at once
        return work_on_slice(job, experiment)
    return experiment_slots.run(job, partial(work_on_slice, experiment=experiment))


def work_on_slice(job: Job, experiment: Experiment) -> object:
    """Run an experiment for a minute, and enqueue its next job unless it has ended."""
    # A job has a limited number of attempts. After each death of a worker, the experiment gets a new job.
    if job.attempts == 1:
        work_or_fail(experiment, job)
    hand_over_to_next_job(job, experiment)
    return runner.CONTINUES


@transaction.atomic
def hand_over_to_next_job(job: Job, experiment: Experiment) -> None:
    """Finish a job, and enqueue the next one of its experiment unless it has ended or has a newer job.

    In one transaction: after a death in between, two jobs would work on the experiment, and pay its judges twice.
    """
    # Locked, so that a retry at the same moment waits, or this job sees the one that the retry has enqueued.
    rows = Experiment.objects.unfinished().filter(pk=experiment.pk)
    if rows.select_for_update().values_list("pk", flat=True).first() is not None:
        jobs = Job.objects.unfinished().filter(kind=EXPERIMENT_JOB, parameters=job.parameters)
        # Not any other job: of two that end at the same moment, the newer one goes on.
        if not jobs.filter(created_at__gt=job.created_at).exists():
            enqueue_experiment(experiment)
    job.report_progress(done=experiment.done_count, total=experiment.total_items)
    job.finish({"done": experiment.done_count})


def work_or_fail(experiment: Experiment, job: Job) -> None:
    """Run an experiment for a minute. One that is deleted meanwhile just stops.

    Raise Unavailable if a service does not respond, so that the job is tried again. Any other error fails the
    experiment.
    """
    item_loop = ItemLoop(experiment, job)
    try:
        item_loop.work(SLICE)
    except LeaseLost:
        raise
    except Exception as error:
        if was_deleted(experiment):
            log.info("Experiment %s was deleted while it ran.", experiment.pk)
            stop_runs(experiment)
        elif is_outage(error):
            raise error if runner.is_transient(error) else Unavailable from error
        elif reason := missing_target_reason(item_loop):  # it was deleted while an item started
            end_early(experiment, Experiment.Status.FAILED, reason, item_loop.scoring)
        else:
            fail_after_error(experiment, error, item_loop.scoring)
            raise
    finally:
        item_loop.close()


def is_outage(error: Exception) -> bool:
    """Return whether the database, Valkey or the broker did not respond, so that another try may succeed."""
    return isinstance(error, OUTAGES) or runner.is_transient(error)


def was_deleted(experiment: Experiment) -> bool:
    return not Experiment.objects.filter(pk=experiment.pk).exists()


def missing_target_reason(item_loop: ItemLoop) -> str:
    """Return why the target of an experiment can no longer run, or a blank text if it can."""
    try:
        targets.resolve_target(item_loop.experiment, item_loop.user)
    except (ApiError, PermissionDenied) as error:
        return str(error)
    return ""


def fail_after_error(experiment: Experiment, error: Exception, scoring: ScoringLoop) -> None:
    """End an experiment after an error of this application, or nothing would ever end it."""
    reason = UNEXPECTED_MESSAGE.format(error=type(error).__name__)
    try:
        end_early(experiment, Experiment.Status.FAILED, reason, scoring)
    except Exception:  # the figures of its results may be what failed
        log.exception("The figures of experiment %s could not be stored.", experiment.pk)
        rows = Experiment.objects.filter(pk=experiment.pk)
        rows.update(status=Experiment.Status.FAILED, error=reason, completed_at=timezone.now())
