"""The end of an experiment: all items are done, it was cancelled, or its budget is spent."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from agents_app.plural import pluralize
from evals_app.experiments.memory import delete_threads, shares_thread
from evals_app.experiments.summary import count_results, summarize, verdict_of
from evals_app.models import Experiment, ExperimentResult

CANCELLED_MESSAGE = "Cancelled."


def count_so_far(experiment: Experiment) -> None:
    """Write the numbers of finished items."""
    counts = count_results(experiment)
    experiment.succeeded_count, experiment.failed_count = counts["succeeded"], counts["failed"]
    experiment.summary = {"cost": float(counts["cost"]), "tokens": counts["tokens"]}
    experiment.save(update_fields=["succeeded_count", "failed_count", "summary"])


def stop_reason(experiment: Experiment) -> str:
    """Return why an experiment must stop, or a blank text."""
    if experiment.cancel_requested_at is not None:
        return experiment.stop_reason or CANCELLED_MESSAGE
    budget, summary = experiment.budget, experiment.summary
    if (cost := budget.get("maxCost")) is not None and summary.get("cost", 0) > cost:
        return f"The budget of ${cost:g} is spent."
    if (tokens := budget.get("maxTokens")) is not None and summary.get("tokens", 0) > tokens:
        return f"The budget of {pluralize(tokens, 'token')} is spent."
    if (failures := budget.get("maxFailures")) is not None and experiment.failed_count >= failures:
        return f"{pluralize(experiment.failed_count, 'item')} failed."
    if (in_a_row := budget.get("maxConsecutiveFailures")) is not None and fails_in_a_row(experiment, in_a_row):
        return f"{pluralize(in_a_row, 'item')} failed in a row."
    return ""


def fails_in_a_row(experiment: Experiment, count: int) -> bool:
    """Return whether the last results are all failures."""
    if experiment.failed_count < count:
        return False
    done = experiment.results.filter(state=ExperimentResult.State.DONE).order_by("-completed_at")
    return all(error is not None for error in done.values_list("error", flat=True)[:count])


def finish(experiment: Experiment, status: str, reason: str = "") -> None:
    """Store the end of an experiment with its figures."""
    counts, summary = count_results(experiment), summarize(experiment)
    experiment.status, experiment.completed_at = status, timezone.now()
    experiment.succeeded_count, experiment.failed_count = counts["succeeded"], counts["failed"]
    experiment.summary = summary
    if status == Experiment.Status.COMPLETED:
        experiment.verdict = verdict_of(experiment, summary)
    if status == Experiment.Status.FAILED:
        experiment.error = reason
    else:
        experiment.stop_reason = reason
    experiment.updated_at = experiment.completed_at
    experiment.started_at = experiment.started_at or experiment.completed_at
    experiment.save(force_update=True)  # one that was deleted meanwhile is not inserted again
    delete_purged_thread(experiment)


def delete_purged_thread(experiment: Experiment) -> None:
    """Delete the thread that all items used if one of them was purged meanwhile, as the thread has its texts."""
    purged = experiment.results.filter(item__purged_at__isnull=False)
    if shares_thread(experiment.memory) and purged.exists():
        delete_threads(experiment)


def request_cancel(experiment: Experiment) -> None:
    """Ask the job of an experiment to end it. Without a job it ends at once."""
    with transaction.atomic():
        row = Experiment.objects.select_for_update().get(pk=experiment.pk)
        if row.is_finished:
            return
        row.cancel_requested_at = row.cancel_requested_at or timezone.now()
        row.save(update_fields=["cancel_requested_at"])
        if row.is_external:
            finish(row, Experiment.Status.CANCELLED, CANCELLED_MESSAGE)
