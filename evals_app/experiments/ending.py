"""The end of an experiment: all items are done, it was cancelled, or its budget is spent."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.utils import timezone

from agentcms.errors import ApiError
from evals_app.experiments.figures import count_results, earlier_spending, summarize_experiment, verdict_of
from evals_app.experiments.memory import delete_threads_of_experiment, shares_thread
from evals_app.experiments.results import next_open_results, store_stopped
from evals_app.experiments.spending import NOTHING_SPENT, Spent, exceeded_budget
from evals_app.models import Experiment, ExperimentResult

CANCELLED_MESSAGE = "Cancelled."
EXPERIMENT_JOB = "run_experiment"  # the kind of the jobs that work on experiments
END_COLUMNS = (
    *("status", "verdict", "error", "stop_reason", "summary", "succeeded_count", "failed_count"),
    *("started_at", "completed_at", "updated_at"),
)


def experiment_not_found(experiment_id: UUID | str) -> ApiError:
    return ApiError(404, f"Experiment with id {experiment_id} not found", "EXPERIMENT_NOT_FOUND")


def lock_experiment(experiment_id: UUID) -> Experiment:
    """Return an experiment whose row is locked until the transaction ends. Raise ApiError if it was deleted."""
    rows = Experiment.objects.select_for_update(of=("self",)).select_related("dataset")
    row = rows.filter(pk=experiment_id).first()
    if row is None:
        raise experiment_not_found(experiment_id)
    return row


def lock_if_startable(experiment: Experiment) -> bool:
    """Lock an experiment until the transaction ends. Return False if it was deleted, or its items may not start."""
    rows = Experiment.objects.unfinished().filter(pk=experiment.pk, cancel_requested_at=None)
    # Locked, so that a cancel waits until the item has its run, and then finds and stops it.
    return rows.select_for_update().values_list("pk", flat=True).first() is not None


def count_so_far(experiment: Experiment) -> None:
    """Save the numbers of finished items. An experiment that has ended meanwhile keeps its final figures."""
    counts = count_results(experiment)
    experiment.succeeded_count, experiment.failed_count = counts["succeeded"], counts["failed"]
    experiment.summary = {"cost": float(counts["cost"]), "tokens": counts["tokens"]}
    names = ("succeeded_count", "failed_count", "summary")
    rows = Experiment.objects.unfinished().filter(pk=experiment.pk)
    rows.update(**{name: getattr(experiment, name) for name in names})


def stop_reason(experiment: Experiment, spent: Spent = NOTHING_SPENT) -> str:
    """Return why an experiment must stop, or a blank text.

    `spent` is added to the spending of its stored results.
    """
    if experiment.cancel_requested_at is not None:
        return experiment.stop_reason or CANCELLED_MESSAGE
    return exceeded_budget(experiment, spent)


@transaction.atomic
def finish_experiment(experiment: Experiment, status: str, reason: str = "", *, stops_open: bool = False) -> None:
    """Store the end of an experiment with its figures, unless it has ended already.

    With `stops_open`, open results are stored as stopped. Otherwise they keep the experiment open. Raise ApiError if
    it was deleted meanwhile.
    """
    row = lock_experiment(experiment.pk)
    if stops_open and not row.is_finished:
        while open_results := next_open_results(row):
            for result in open_results:
                store_stopped(result)
    if not (row.is_finished or row.results.filter(state=ExperimentResult.State.RUNNING).exists()):
        set_end(row, status, reason)
        row.save(update_fields=END_COLUMNS)
        delete_purged_thread(row)
    for name in END_COLUMNS:
        # The caller goes on with its own instance.
        setattr(experiment, name, getattr(row, name))


def set_end(row: Experiment, status: str, reason: str) -> None:
    """Set the end of a locked experiment with its figures."""
    earlier = earlier_spending(row)
    counts, row.summary = count_results(row, earlier), summarize_experiment(row, earlier)
    row.status, row.completed_at = status, timezone.now()
    row.succeeded_count, row.failed_count = counts["succeeded"], counts["failed"]
    if status == Experiment.Status.COMPLETED:
        row.verdict = verdict_of(row, row.summary)
    if status == Experiment.Status.FAILED:
        row.error = reason
    else:
        row.stop_reason = reason
    row.updated_at = row.completed_at
    row.started_at = row.started_at or row.completed_at


def delete_purged_thread(experiment: Experiment) -> None:
    """Delete the thread that all items used if one of them was purged meanwhile, as the thread has its texts."""
    purged = experiment.results.filter(item__purged_at__isnull=False)
    if shares_thread(experiment.memory) and purged.exists():
        delete_threads_of_experiment(experiment)


@transaction.atomic
def mark_cancelled(experiment: Experiment) -> bool:
    """Let no further item of an experiment start. Return False if it has ended. Raise ApiError if it was deleted."""
    row = lock_experiment(experiment.pk)
    if row.is_finished:
        return False
    row.cancel_requested_at = row.cancel_requested_at or timezone.now()
    row.save(update_fields=["cancel_requested_at"])
    return True
