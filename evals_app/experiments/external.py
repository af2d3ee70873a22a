"""Experiments that a program outside drives: it runs single items, or submits results of its own."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from access_app.caller import Caller
from access_app.permissions import require_granted_role
from access_app.role import Role
from agentcms.db.connections import return_connection
from agentcms.errors import ApiError, Conflict, Unavailable
from agentcms.ids import parse_uuid
from agentcms.wire.json_types import JSONObject
from agentcms.wire.timestamps import parse_timestamp
from agents_app.configuration.schema import ConfigError, Issue
from evals_app.datasets.changes import reject_purged
from evals_app.experiments import targets
from evals_app.experiments.direct.calls import insert_or_take_over, is_late_call, perform_call
from evals_app.experiments.direct.targets import Callee
from evals_app.experiments.ending import count_so_far, experiment_not_found, lock_experiment
from evals_app.experiments.items import MustWait, start_item
from evals_app.experiments.results import save_result
from evals_app.experiments.scoring import score_entry
from evals_app.experiments.stopping import end_early
from evals_app.models import Dataset, DatasetItem, Experiment, ExperimentResult, ItemVersion
from runs_app.models import AgentRun
from runs_app.resolution import ResolvedAgent

FINALIZED = "EXPERIMENT_ALREADY_FINALIZED"
MAX_WAIT = 60.0  # seconds for the run of one item
RUN_POLL_INTERVAL = 0.1  # seconds


def require_open(experiment: Experiment) -> None:
    """Raise Conflict for an experiment that has ended, or that runs here."""
    if not experiment.is_external:
        raise Conflict("This experiment runs here. Create one with start: false.", "EXPERIMENT_NOT_EXTERNAL")
    if experiment.is_finished:
        raise Conflict("This experiment was finalized. Create another one.", FINALIZED)


def find_item_version(experiment: Experiment, item_id: str) -> ItemVersion:
    """Return an item at the version of the experiment. Raise ApiError."""
    item_uuid: UUID | None = parse_uuid(item_id)
    rows = ItemVersion.objects.at_version(experiment.dataset_version).filter(dataset=experiment.dataset_id)
    version = rows.filter(item_id=item_uuid).select_related("item").first() if item_uuid else None
    if version is None:
        raise ApiError(404, f"Item with id {item_id} not found", "DATASET_ITEM_NOT_FOUND")
    return version


def submit_result(experiment: Experiment, fields: JSONObject, user: Caller | None = None) -> ExperimentResult:
    """Store a result of a program outside, in place of an earlier one of the same item and attempt.

    Raise Conflict for a purged item, and as `require_editor` does. Without `user`, nobody's role is checked.
    """
    version = find_item_version(experiment, fields["item_id"])
    values = {"item_version": version, **submitted_values(fields)}
    with transaction.atomic():
        # Locked, so that no result is stored after the experiment has ended and its figures are computed.
        row = lock_experiment(experiment.pk)
        if user is not None:
            require_editor(row, user)  # this may have waited for the lock
        require_open(row)
        # Locked against a purge. A change of the item may refer to it meanwhile.
        reject_purged(DatasetItem.objects.select_for_update(no_key=True).get(pk=version.item_id))
        attempt = fields.get("attempt") or 0
        result, _ = experiment.results.update_or_create(item=version.item, attempt=attempt, defaults=values)
        row.has_submitted_results = True
        row.save(update_fields=["has_submitted_results"])
        mark_started(row)
        count_so_far(row)
    return result


def require_editor(experiment: Experiment, user: Caller) -> None:
    """Raise ApiError if the user may no longer see an experiment, and RoleRequired without the role."""
    dataset = Dataset.objects.for_user(user).with_role(user).filter(pk=experiment.dataset_id).first()
    if dataset is None:
        raise experiment_not_found(experiment.pk)
    require_granted_role(user, Role.EDITOR, dataset)


def submitted_values(fields: JSONObject) -> JSONObject:
    """Return the columns of a submitted result. Raise ConfigError for invalid times and repeated scorers."""
    scores = fields.get("scores") or []
    reject_repeated_scorers(scores)
    completed_at = _time(fields, "completed_at", "completedAt", timezone.now())
    # Without a start, the duration is unknown. A second look at the clock would make it a millisecond now and then.
    started_at = _time(fields, "started_at", "startedAt", completed_at)
    milliseconds = int((completed_at - started_at).total_seconds() * 1000)
    return {
        "state": ExperimentResult.State.DONE,
        "is_submitted": True,
        "trace_id": fields.get("trace_id") or "",
        "input": fields.get("input"),
        "ground_truth": fields.get("ground_truth"),
        "output": fields.get("output"),
        "error": fields.get("error"),
        "scores": [submitted_score(row) for row in scores],
        "started_at": started_at,
        "completed_at": completed_at,
        # The times come from outside, in any order, and the column has 32 bits.
        "duration_ms": max(0, min(milliseconds, 2**31 - 1)),
    }


def reject_repeated_scorers(scores: Sequence[JSONObject]) -> None:
    """Raise ConfigError for a second score of a scorer: it would count as that of another answer."""
    keys: set[str] = set()
    issues = []
    for number, key in enumerate(row["scorerId"] for row in scores):
        if key in keys:
            issues.append(Issue(f"scores[{number}].scorerId", f"'{key}' occurs twice. Send one score of a scorer."))
        keys.add(key)
    if issues:
        raise ConfigError(issues)


def submitted_score(row: JSONObject) -> JSONObject:
    """Return a submitted score as a result stores it, with what the program says about it."""
    more = {"metadata": row["metadata"]} if row.get("metadata") else {}
    return score_entry(row["scorerId"], row.get("scorerName") or "", row["score"], row.get("reason") or "", **more)


def _time(fields: JSONObject, name: str, wire: str, default: datetime) -> datetime:
    try:
        return parse_timestamp(fields[name]) if fields.get(name) else default
    except ValueError as error:
        raise ConfigError([Issue(wire, str(error))]) from None


def run_item(experiment: Experiment, item_id: str, options: JSONObject, user: Caller) -> ExperimentResult:
    """Run one item now, and return its result. A repeated call returns the same one. Raise ApiError."""
    version = find_item_version(experiment, item_id)
    attempt = options.get("attempt") or 0
    result = experiment.results.filter(item=version.item_id, attempt=attempt).first()
    try:
        if result is None or is_late_call(experiment, result):
            start_target(experiment, version, targets.resolve_target(experiment, user), user, options)
            result = experiment.results.get(item=version.item_id, attempt=attempt)
            if result.state == ExperimentResult.State.DONE:  # it was called, or could not start
                count_so_far(experiment)
        wait_for_result(experiment, result)
        return experiment.results.select_related("item_version").get(pk=result.pk)
    except ExperimentResult.DoesNotExist:  # the experiment was deleted while the item ran
        raise experiment_not_found(experiment.pk) from None


def start_target(
    experiment: Experiment, version: ItemVersion, target: ResolvedAgent | Callee, user: Caller, options: JSONObject
) -> None:
    """Start the run of an item, or call a workflow or a scorer with it.

    Raise Unavailable, Conflict for an experiment that has ended, and as `require_editor` does.
    """
    attempt = options.get("attempt") or 0
    context = options.get("request_context") or {}
    called = None
    try:
        with transaction.atomic():
            row = lock_experiment(experiment.pk)
            require_editor(row, user)
            require_open(row)
            mark_started(row)
            if isinstance(target, Callee):
                called = insert_or_take_over(experiment, version, attempt)
            else:
                start_item(experiment, version, target, user, attempt=attempt, request_context=context)
    except MustWait:
        raise Unavailable("The thread of this item is in use. Try again shortly.") from None
    if isinstance(target, Callee) and called is not None:
        # After the commit: a call may take minutes, and others would wait for the lock as long.
        perform_call(called, target)


def mark_started(row: Experiment) -> None:
    """Mark a locked experiment as running."""
    row.status, row.started_at = Experiment.Status.RUNNING, row.started_at or timezone.now()
    row.save(update_fields=["status", "started_at"])


def wait_for_result(experiment: Experiment, result: ExperimentResult) -> None:
    """Wait for the run of an item and store its result. Raise Unavailable if it takes too long."""
    deadline = time.monotonic() + MAX_WAIT
    while result.state == ExperimentResult.State.RUNNING and not take_end(experiment, result):
        if time.monotonic() > deadline:
            raise Unavailable("The item still runs. Repeat the request to get its result.", 5)
        return_connection()
        time.sleep(RUN_POLL_INTERVAL)


def take_end(experiment: Experiment, result: ExperimentResult) -> bool:
    """Store the result of an item whose run has ended. Return False while it runs, or another request calls it."""
    if experiment.target_type != Experiment.Target.AGENT:
        result.refresh_from_db(fields=["state"])
        return result.state == ExperimentResult.State.DONE
    run = AgentRun.objects.filter(pk=result.run_id).first() if result.run_id else None
    if run is not None and run.status in AgentRun.UNFINISHED_STATUSES:
        return False
    result.experiment = experiment
    save_result(result, run)
    count_so_far(experiment)
    return True


def finalize_experiment(experiment: Experiment) -> None:
    """End an experiment that a program outside drives. Items that still run are stopped. Repeated, it does nothing."""
    if experiment.is_finished:
        return
    require_open(experiment)
    end_early(experiment, Experiment.Status.COMPLETED)
