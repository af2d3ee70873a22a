"""Comparisons that are kept in rows. A job computes them, because the libraries are large."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Count, Max, QuerySet

from access_app.caller import Caller
from agentcms.errors import Conflict
from agentcms.wire.canonical import sha256_hex
from agentcms.wire.json_types import JSONObject
from evals_app.compare.comparison_in_words import describe_statistics
from evals_app.compare.pairs import compute_statistics
from evals_app.models import Comparison, Experiment, ExperimentResult
from evals_app.scorers.directions import find_inverted_scorers
from jobs_app import runner
from jobs_app.models import Job

COMPARE = "compare_experiments"


def find_comparison(
    baseline: Experiment, candidate: Experiment, user: Caller | None = None, *, again: bool = False
) -> Comparison:
    """Return the comparison of two experiments. If it is not computed yet, a job does so. Raise Conflict.

    One that failed is computed `again` on request alone: whatever failed would fail at each look at the page.
    """
    require_comparable(baseline, candidate)
    with transaction.atomic():
        row, is_new = Comparison.objects.select_for_update().get_or_create(baseline=baseline, candidate=candidate)
        basis = basis_of(baseline, candidate)
        fail_with_job(row)
        is_due = is_new or row.basis != basis or is_without_job(row)
        if is_due or (again and row.state == Comparison.State.FAILED):
            # In this transaction: a second request at the same moment waits for the row, and finds the job.
            job = runner.enqueue(COMPARE, {"comparison": row.pk}, requested_by=user)
            row.state, row.statistics, row.basis, row.job_id = Comparison.State.PENDING, None, basis, job.pk
            row.save()
    return row


def fail_with_job(row: Comparison) -> None:
    """Fail a locked comparison whose job has failed: its worker died each time, or the database was unavailable."""
    if row.state == Comparison.State.PENDING and job_of(row).filter(state=Job.State.FAILED).exists():
        row.state = Comparison.State.FAILED
        row.save(update_fields=["state"])


def is_without_job(row: Comparison) -> bool:
    """Return whether a comparison waits for a job that was deleted or has ended."""
    return row.state == Comparison.State.PENDING and not job_of(row).exclude(state=Job.State.DONE).exists()


def job_of(row: Comparison) -> QuerySet[Job]:
    return Job.objects.filter(pk=row.job_id) if row.job_id else Job.objects.none()


def require_comparable(baseline: Experiment, candidate: Experiment) -> None:
    """Raise Conflict unless both experiments have ended and have the same dataset."""
    if baseline.dataset_id != candidate.dataset_id:
        raise Conflict("Only experiments over the same dataset can be compared.", "other_dataset")
    if not (baseline.is_finished and candidate.is_finished):
        raise Conflict("Wait until both experiments have ended.", "experiment_running")


def basis_of(*experiments: Experiment) -> str:
    """Return a hash that changes with the results of experiments."""
    # A score that failed and is computed again changes neither the count nor the end of its answer.
    ends = [str(row.completed_at) for row in experiments]
    rows = ExperimentResult.objects.filter(experiment__in=experiments).order_by()
    figures = rows.values("experiment_id").annotate(Count("pk"), Max("completed_at")).order_by("experiment_id")
    # Comparisons of earlier releases took a high score of these scorers for a good one.
    inverted = sorted(find_inverted_scorers(*experiments))
    return sha256_hex(repr([sorted(map(str, row.values())) for row in figures] + inverted + ends))


@runner.job_handler(COMPARE, "Comparison of experiments")
def compare_job(job: Job) -> JSONObject:
    """Compute a comparison."""
    row = Comparison.objects.select_related("baseline", "candidate").filter(pk=job.parameters["comparison"]).first()
    if row is None:
        return {"compared": 0}
    try:
        compute(row)
    except Exception as error:
        if not runner.is_transient(error):  # or the page and the client would wait for ever
            Comparison.objects.filter(pk=row.pk).update(state=Comparison.State.FAILED)
        raise
    return {"compared": 1}


def compute(row: Comparison) -> None:
    """Compute the statistics of a comparison and store them, unless it was deleted meanwhile."""
    basis = basis_of(row.baseline, row.candidate)  # first: results that change meanwhile make it outdated
    statistics = compute_statistics(row.baseline, row.candidate)
    for entry in statistics["scorers"].values():
        entry["sentence"] = describe_statistics(entry, row.baseline, row.candidate)
    row.statistics, row.state, row.basis = statistics, Comparison.State.DONE, basis
    names = ("statistics", "state", "basis")
    Comparison.objects.filter(pk=row.pk).update(**{name: getattr(row, name) for name in names})


def compute_now(baseline: Experiment, candidate: Experiment) -> Comparison:
    """Return the comparison of two experiments, computed in this process. Raise Conflict."""
    require_comparable(baseline, candidate)
    row, _ = Comparison.objects.get_or_create(baseline=baseline, candidate=candidate)
    compute(row)
    return row
