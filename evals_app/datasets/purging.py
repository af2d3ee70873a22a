"""Purges: an item is redacted in all its versions and results, and what experiments stored of it is deleted."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from access_app.caller import Caller
from agentcms.db.column_values import ColumnValues
from agentcms.wire.json_types import JSONObject
from agents_app.editing.change_context import current_change
from evals_app.datasets.changes import ItemsChange, begin_change
from evals_app.experiments.memory import delete_threads_of_experiment, delete_threads_of_result, shares_thread
from evals_app.models import Dataset, DatasetItem, Experiment, ExperimentResult, ItemVersion
from runs_app.engine import run_ends
from runs_app.models import AgentRun
from runs_app.models.run_queryset import AgentRunQuerySet

REDACTED = "[purged]"


@transaction.atomic
def purge_item(dataset: Dataset, item: DatasetItem, user: Caller) -> None:
    """Redact an item in all its versions and results. This makes no version, and the admin log records it.

    Raise Conflict if the dataset has moved to another team meanwhile.
    """
    begin_change(dataset)  # locks it, and makes no version
    redact_item(dataset, item)
    LogEntry.objects.create(
        user_id=user.pk,  # type: ignore[misc]  # anonymous users do not come here
        content_type=ContentType.objects.get_for_model(Dataset),
        object_id=dataset.pk,
        object_repr=dataset.name[:200],
        action_flag=CHANGE,
        change_message=f"Item {item.pk} purged ({current_change().source}).",
    )


@transaction.atomic
def redact_item(dataset: Dataset, item: DatasetItem) -> None:
    """Redact an item in all its versions and results."""
    # Locks the dataset: a change that copies the item meanwhile would keep its texts.
    ItemsChange(dataset)
    # The policy has no text, and its column cannot be null.
    empty = {name: None for name in ItemVersion.CONTENT_FIELDS if name not in ("input", "unmocked_tool_policy")}
    ItemVersion.objects.filter(item=item).update(input=REDACTED, text="", resource_digest="", **empty)
    item.purged_at = item.purged_at or timezone.now()
    item.save(update_fields=["purged_at"])
    purge_results(item.pk)


@transaction.atomic
def redact_copies_of_runs(run_ids: Collection[UUID]) -> None:
    """Redact the items that were made of runs, and the results that experiments have of them."""
    references = [str(run_id) for run_id in run_ids]
    copies = ItemVersion.objects.filter(source__type="trace", source__referenceId__in=references)
    redact_found(copies, ExperimentResult.objects.filter(run_key__in=run_ids))


@transaction.atomic
def redact_copies_of_resource(digest: str, before: datetime) -> None:
    """Redact what datasets and experiments have of the runs of a resource, also of those that were deleted earlier.

    The resource is known by its hash. Copies that were made later stay: the person may have come back.
    """
    results = ExperimentResult.objects.filter(resource_digest=digest, created_at__lt=before)
    redact_found(ItemVersion.objects.filter(resource_digest=digest, created_at__lt=before), results)


def redact_found(versions: QuerySet[ItemVersion], results: QuerySet[ExperimentResult]) -> None:
    """Redact items of which these are versions, and results. Datasets are locked in the order of their IDs."""
    items = DatasetItem.objects.filter(pk__in=versions.order_by().values("item"))
    for item in items.select_related("dataset").order_by("dataset", "pk"):
        redact_item(item.dataset, item)
    # Locked, as in purge_results: a result that is stored meanwhile would be overwritten with older scores.
    for result in results.select_for_update(of=("self",)).order_by("pk"):
        redact(result)


@transaction.atomic
def purge_results(item_id: UUID) -> None:
    """Redact the results of an item, and delete the runs and threads of experiments that have its texts.

    A run that has not ended is cancelled. Its result is redacted when it is stored.
    """
    # Lock first: a result that is stored meanwhile would be overwritten with older scores.
    rows = ExperimentResult.objects.select_for_update(of=("self",)).filter(item=item_id).order_by("pk")
    results = list(rows.select_related("experiment"))
    experiments = {result.experiment_id: result.experiment for result in results}
    runs = runs_of_item([*experiments.values()], [result.run_key for result in results])
    AgentRun.objects.in_trees_of(runs.values("pk")).lock_in_order()  # those below are deleted with them
    for result in results:
        redact(result)
        delete_threads_of_result(result)
    for experiment in experiments.values():
        if experiment.is_finished and shares_thread(experiment.memory):
            delete_threads_of_experiment(experiment)
    delete_runs(runs)


def redact(result: ExperimentResult) -> None:
    """Remove all texts of a result. Its numbers stay."""
    texts: ColumnValues = {"input": None, "ground_truth": None, "tool_mock_report": None, "comment": "", "tags": []}
    texts["resource_digest"] = ""  # so that nobody redacts it again
    for name, value in texts.items():
        setattr(result, name, value)
    result.output = REDACTED
    if result.error is not None:
        result.error = {**result.error, "message": REDACTED}
    result.scores = [redacted_score(entry) for entry in result.scores]
    result.save(update_fields=[*texts, "output", "error", "scores"])


def redacted_score(entry: JSONObject) -> JSONObject:
    """Return a score of a result without its texts."""
    numbers = {name: value for name, value in entry.items() if name != "metadata"}
    return {**numbers, "reason": None, "details": None, "error": REDACTED if entry.get("error") else None}


def runs_of_item(experiments: list[Experiment], keys: list[UUID | None]) -> AgentRunQuerySet:
    """Return the runs of experiments with these IDs, and those of earlier attempts, which belong to no result."""
    runs = AgentRun.objects.filter(experiment_id__in=[row.pk for row in experiments], parent=None)
    linked = ExperimentResult.objects.filter(experiment__in=experiments, run_key__isnull=False)
    return runs.exclude(pk__in=linked.exclude(run_key__in=[key for key in keys if key]).values("run_key"))


def delete_runs(runs: AgentRunQuerySet) -> None:
    """Delete runs. Those that have not ended are cancelled."""
    for run in runs.only("pk", "status"):
        if run.status in AgentRun.UNFINISHED_STATUSES:
            run_ends.cancel_run(run.pk)
        else:
            run.delete()
