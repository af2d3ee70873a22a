"""A second attempt at the items of an experiment that failed or did not run, and at scores that failed."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from access_app.caller import Caller
from access_app.permissions import require_role
from access_app.role import Role
from agentcms.db.batches import in_batches
from agentcms.db.column_values import ColumnValues
from agentcms.errors import Conflict
from evals_app.experiments.creation import reject_many_experiments
from evals_app.experiments.ending import count_so_far, lock_experiment, stop_reason
from evals_app.experiments.figures import find_unscored
from evals_app.experiments.jobs import enqueue_experiment
from evals_app.experiments.memory import delete_threads_of_results
from evals_app.experiments.spending import Spent, add_earlier_spending, spent_by_results, total_spent
from evals_app.models import Experiment, ExperimentResult

RESULTS_PER_UPDATE = 500
NO_SCORES: ColumnValues = {"scores": [], "scores_tokens": None, "scores_cost": None}
UNSCORED_ERROR = {"message": "A scorer failed."}
REOPENED_COLUMNS = (
    *("status", "verdict", "error", "stop_reason"),
    *("cancel_requested_at", "completed_at", "updated_at"),
)


def retry_failed(experiment: Experiment, user: Caller) -> int:
    """Run the items again that failed, and those that a cancelled experiment left out. Return their number.

    The failed results are deleted; their runs stay. An answer whose scorer failed is scored again, which counts too.
    Raise Conflict, RoleRequired without the role for the target, and ApiError if the user has too many experiments.
    """
    with transaction.atomic():
        row = lock_experiment(experiment.pk)
        if row.is_external:
            raise Conflict("A program outside runs these items. Run them there again.", "EXPERIMENT_EXTERNAL")
        if not row.is_finished:
            raise Conflict("Wait until the experiment has ended, or cancel it.", "experiment_running")
        require_role(user, Role.EDITOR, row.target_owner_id)
        # Before the others: an answer that cannot be scored again becomes a failed one.
        reopen_unscored(row)
        delete_failed(row)
        reopen(row)
        if row.created_by_id == user.pk:
            reject_many_experiments(user)
        count_so_far(row)
        # What deleted results have spent counts too, so the experiment might end before its first item.
        if reason := stop_reason(row):
            raise Conflict(f"{reason} Start another experiment with a larger budget.", "budget_spent")
        enqueue_experiment(row)
    return row.total_items - row.done_count


def delete_failed(row: Experiment) -> None:
    """Delete the failed results of an experiment with their threads. What they have spent still counts."""
    failed = row.results.filter(error__isnull=False)
    # Not the answers and scores, which may be large.
    columns = ("pk", "experiment_id", "item_id", "attempt", "tokens", "cost", "scores_tokens", "scores_cost")
    results = list(failed.only(*columns))
    delete_threads_of_results(row, results)
    add_earlier_spending(row.pk, spent_by_results(results))
    failed.delete()


def reopen_unscored(row: Experiment) -> None:
    """Let the job score those answers again whose scorers failed, with all their scorers.

    An answer without its run cannot be scored, and its item counts as failed. Only the answer of an agent has a run,
    which may be deleted.
    """
    columns: ColumnValues = {"state": ExperimentResult.State.RUNNING, "completed_at": None, **NO_SCORES}
    for keys in in_batches(find_unscored(row), RESULTS_PER_UPDATE):
        unscored = row.results.filter(pk__in=keys)
        unscored.filter(run=None).update(error=UNSCORED_ERROR)
        with_run = unscored.filter(run__isnull=False)
        spent = with_run.values_list("scores_tokens", "scores_cost")
        add_earlier_spending(row.pk, total_spent(Spent(*values) for values in spent))
        with_run.update(**columns)


def reopen(row: Experiment) -> None:
    """Mark an experiment as running, without its end."""
    row.status, row.updated_at = Experiment.Status.RUNNING, timezone.now()
    row.completed_at = row.cancel_requested_at = None
    row.verdict = row.error = row.stop_reason = ""
    row.save(update_fields=REOPENED_COLUMNS)
