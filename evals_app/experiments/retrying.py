"""A second attempt at the items of an experiment that failed or did not run."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from access_app.caller import Caller
from access_app.permissions import require_role
from access_app.role import Role
from agentcms.errors import Conflict
from evals_app.experiments.ending import count_so_far
from evals_app.experiments.jobs import enqueue_walk
from evals_app.experiments.memory import delete_threads_of_result
from evals_app.models import Experiment


def retry_failed(experiment: Experiment, user: Caller) -> int:
    """Run the items again that failed, and those that a cancelled experiment left out. Return their number.

    The failed results are deleted; their runs stay. Raise Conflict, and RoleRequired without the role for the target.
    """
    with transaction.atomic():
        row = Experiment.objects.select_for_update().get(pk=experiment.pk)
        if row.is_external:
            raise Conflict("A program outside runs these items. Run them there again.", "EXPERIMENT_EXTERNAL")
        if not row.is_finished:
            raise Conflict("Wait until the experiment has ended, or cancel it.", "experiment_running")
        require_role(user, Role.EDITOR, row.target_owner_id)
        failed = row.results.filter(error__isnull=False)
        for result in failed.only("pk", "experiment_id", "item_id", "attempt"):
            delete_threads_of_result(result)
        failed.delete()
        reopen(row)
        count_so_far(row)
        enqueue_walk(row)
    return row.total_items - row.done_count


def reopen(row: Experiment) -> None:
    """Mark an experiment as running, without its end."""
    row.status, row.updated_at = Experiment.Status.RUNNING, timezone.now()
    row.completed_at = row.cancel_requested_at = None
    row.verdict = row.error = row.stop_reason = ""
    row.save()
