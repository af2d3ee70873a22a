"""The results of runs of an experiment that have ended, and their review by people."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypedDict
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from agentcms.wire.canonical import canonical, sha256_hex
from agentcms.wire.json_parser import InvalidJSON, parse_strict_json
from agentcms.wire.json_types import JSONObject
from evals_app.datasets.purging import purge_results
from evals_app.experiments.scoring import add_scores, scorer_keys
from evals_app.experiments.spending import Spent, add_earlier_spending, run_tree, spent_by_runs
from evals_app.models import DatasetItem, Experiment, ExperimentResult
from evals_app.reports.tool_mocks import find_mock_failure, mock_report
from runs_app.engine.run_ends import LOST_MESSAGE
from runs_app.models import AgentRun
from runs_app.tool_mocks.mocks import NO_PERSON_MESSAGE

MAX_ITEM_RETRIES = 5
# More are open if many answers are scored again. The runs are at most 40: twice the highest concurrency.
OPEN_RESULTS_PER_READ = 100
SCORE_COLUMNS = ("scores", "scores_tokens", "scores_cost")
REVIEW_COLUMNS = ("review", "tags", "comment")
LOST_CODE = "lost"
STOPPED_ERROR = {"message": "The run was stopped.", "code": "stopped"}


class ReviewColumns(TypedDict, total=False):
    """The columns of a result that people set."""

    review: str
    tags: list[str]
    comment: str


def store_review(result: ExperimentResult, columns: ReviewColumns) -> None:
    """Store what people think of a result.

    Only these columns are written: a retry, or another person, may change the others at the same moment.
    """
    for name, value in columns.items():
        setattr(result, name, value)
    if columns:
        result.save(update_fields=[*columns])


def review_mark(result: ExperimentResult) -> str:
    """Return a hash of the review of a result. A form sends it with a change of what it displays."""
    return sha256_hex(canonical([result.review, result.tags, result.comment]))


def store_seen_review(result: ExperimentResult, columns: ReviewColumns, seen: str) -> bool:
    """Store a review, unless another person has replaced the one with the mark `seen`. A blank mark is any.

    Return False then, and set the columns of the result to what that person has stored.
    """
    with transaction.atomic():
        current = ExperimentResult.objects.select_for_update().only(*REVIEW_COLUMNS).get(pk=result.pk)
        is_seen = seen in ("", review_mark(current))
        for name in REVIEW_COLUMNS:
            setattr(result, name, getattr(current, name))
        if is_seen:
            store_review(result, columns)
    return is_seen


def was_lost(run: AgentRun | None) -> bool:
    """Return whether the process of a run died, so that its item runs again."""
    return run is None or (run.status == AgentRun.Status.FAILED and run.error == LOST_MESSAGE)


def save_result(result: ExperimentResult, run: AgentRun | None) -> bool:
    """Score the answer of a run that has ended, and store both. Return False if another process did so."""
    result.run = run
    fill_from_run(result, run)
    if result.error is None:  # there is no answer to score otherwise
        add_scores(result, scorer_keys(result.experiment, result.item_version))
    return store_scored(result)


def store_scored(result: ExperimentResult) -> bool:
    """Store a scored result. Return False if another process did so; what the scorers have spent counts even then."""
    is_stored = store_result(result)
    if not is_stored:
        add_earlier_spending(result.experiment_id, Spent(result.scores_tokens, result.scores_cost))
    return is_stored


def store_stopped(result: ExperimentResult) -> bool:
    """Store that the run of a result was stopped, with what it has spent so far."""
    if result.run is not None:
        result.tokens, result.cost = spent_by_runs(run_tree(result.run))
    result.error, result.duration_ms, result.completed_at = dict(STOPPED_ERROR), 0, timezone.now()
    return store_result(result)


def store_result(result: ExperimentResult, retry_count: int | None = None) -> bool:
    """Store the end of a running result. Return False if another process did so, or started its item again.

    `retry_count` is the number that the row has, if it is not that of the result.
    """
    names = ("output", "error", "duration_ms", "tokens", "cost", "tool_mock_report", "completed_at", *SCORE_COLUMNS)
    values = {name: getattr(result, name) for name in names}
    rows = open_row(result, retry_count)
    # One UPDATE decides which process stores the result, as two may work on the item after a lost lease. The row keeps
    # the run with which it started, or none if that was deleted meanwhile.
    is_stored = bool(rows.update(state=ExperimentResult.State.DONE, **values))
    if is_stored and DatasetItem.objects.filter(pk=result.item_id, purged_at__isnull=False).exists():
        purge_results(result.item_id)  # the item was purged while it ran
    return is_stored


def open_row(result: ExperimentResult, retry_count: int | None = None) -> QuerySet[ExperimentResult]:
    """Return the row of a running result, or none if another process has stored it, or started its item again.

    Each start of an item again has another number of retries.
    """
    number = result.retry_count if retry_count is None else retry_count
    return ExperimentResult.objects.filter(pk=result.pk, state=ExperimentResult.State.RUNNING, retry_count=number)


def next_open_results(experiment: Experiment, without: Collection[UUID] = ()) -> list[ExperimentResult]:
    """Return the first running results of an experiment with their runs, without the large columns of those."""
    rows = experiment.results.filter(state=ExperimentResult.State.RUNNING).exclude(pk__in=without)
    rows = rows.select_related("item_version", "run").defer("run__stored_configuration", "run__conversation")
    return list(rows[:OPEN_RESULTS_PER_READ])


def fill_from_run(result: ExperimentResult, run: AgentRun | None) -> None:
    """Set the columns of a result from its run."""
    result.completed_at = timezone.now()
    if run is None:
        result.error = {"message": "The run of this item was deleted before it was scored.", "code": LOST_CODE}
        return
    duration = run.duration
    result.duration_ms = int(duration.total_seconds() * 1000) if duration else None
    tree = run_tree(run)
    result.tokens, result.cost = spent_by_runs(tree)
    result.completed_at = run.finished_at or result.completed_at
    result.error = run_error(run)
    add_mock_report(result, run, tree)
    if result.error is None:
        result.output = output_of(run)


def add_mock_report(result: ExperimentResult, run: AgentRun, tree: Sequence[AgentRun]) -> None:
    """Set what mocks did, and the error of a call that needed one, also if a sub-agent made it."""
    failed = find_mock_failure(tree)
    if failed is not None:
        message, failure = failed
        result.error = {"message": message, "code": failure.code}
    item = result.item_version
    if item.tool_mocks or failed or item.unmocked_tool_policy == item.Policy.DENY:
        result.tool_mock_report = mock_report(run, item.tool_mocks or [], failed[1] if failed else None)


def output_of(run: AgentRun) -> object:
    """Return the answer of a run: an object if it was asked for one, else a text."""
    if (run.input.get("options") or {}).get("structuredOutput") or run.configuration.get("structuredOutput"):
        try:
            return parse_strict_json(run.output.encode())
        except InvalidJSON:
            return run.output
    return run.output


def run_error(run: AgentRun) -> JSONObject | None:
    """Return the error of a run, or None if it succeeded."""
    if run.status == AgentRun.Status.SUCCEEDED:
        return None
    if run.status == AgentRun.Status.CANCELLED:
        return dict(STOPPED_ERROR)
    if run.status == AgentRun.Status.SUSPENDED:
        return {"message": NO_PERSON_MESSAGE, "code": "approval_required"}
    if run.error == LOST_MESSAGE:
        return {"message": f"The process of this item died {MAX_ITEM_RETRIES + 1} times.", "code": LOST_CODE}
    return {"message": run.error or "The run failed."}
