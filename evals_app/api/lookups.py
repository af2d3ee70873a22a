"""Lookups for the API views of evaluations."""

from __future__ import annotations

from collections.abc import Sequence

from rest_framework.request import Request

from access_app.permissions import require_granted_role
from access_app.role import Role
from agentcms.errors import BadRequest
from agentcms.ids import parse_uuid
from evals_app.datasets.changes import dataset_not_found, item_not_found
from evals_app.experiments.ending import experiment_not_found
from evals_app.models import Dataset, DatasetItem, Experiment, ItemVersion


def get_dataset(request: Request, dataset_id: str, role: Role = Role.VIEWER) -> Dataset:
    """Return a dataset. Raise ApiError if the user may not see it, and RoleRequired without the role."""
    dataset = Dataset.objects.for_user(request.user).with_role(request.user).filter(pk=dataset_id).first()
    if dataset is None:
        raise dataset_not_found(dataset_id)
    if role != Role.VIEWER:  # everybody with a team reads the shared ones
        require_granted_role(request.user, role, dataset)
    return dataset


def reject_later_version(dataset: Dataset, version: int) -> None:
    """Raise BadRequest for a version that a dataset does not have yet, and that may have other items then."""
    if version > dataset.version:
        message = f"The newest version of the dataset is {dataset.version}."
        raise BadRequest("query parameters", [("version", message)])


def get_item(dataset: Dataset, item_id: str) -> DatasetItem:
    """Return an item of a dataset, deleted or not. Raise ApiError."""
    item_uuid = parse_uuid(item_id)
    item = dataset.items.filter(pk=item_uuid).first() if item_uuid else None
    if item is None:
        raise item_not_found(item_id)
    return item


def get_item_versions(dataset: Dataset, keys: Sequence[int]) -> list[ItemVersion]:
    """Return versions of items with their items, in the order of their keys. Raise ApiError for one that is gone."""
    rows = ItemVersion.objects.filter(dataset=dataset).select_related("item").in_bulk(keys)
    if missing := [key for key in keys if key not in rows]:
        raise item_not_found(str(missing[0]))
    return [rows[key] for key in keys]


def get_experiment(
    request: Request, experiment_id: str, role: Role = Role.VIEWER, dataset_id: str | None = None
) -> Experiment:
    """Return an experiment, of a dataset if one is given. Raise ApiError, and RoleRequired without the role."""
    experiment_uuid = parse_uuid(experiment_id)
    rows = Experiment.objects.for_user(request.user).select_related("dataset")
    if dataset_id is not None:
        # First: an unknown dataset has an error code of its own.
        get_dataset(request, dataset_id)
        rows = rows.filter(dataset=dataset_id)
    experiment = rows.filter(pk=experiment_uuid).first() if experiment_uuid else None
    if experiment is None:
        raise experiment_not_found(experiment_id)
    get_dataset(request, experiment.dataset_id, role)
    return experiment
