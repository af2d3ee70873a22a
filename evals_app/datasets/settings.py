"""The settings of a dataset: its name, schemas, scorers and targets, and its archive."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from agentcms.wire.canonical import json_equal
from agentcms.wire.json_types import JSONObject
from agentcms.wire.unknown_names import UnknownName
from evals_app.datasets.changes import lock_dataset
from evals_app.datasets.creation import reject_invalid_items
from evals_app.datasets.schema import schemas_of
from evals_app.experiments.scoring import missing_scorers
from evals_app.models import Dataset


@transaction.atomic
def change_settings(dataset_id: str, columns: JSONObject) -> Dataset:
    """Set columns of a dataset. Raise ConfigError if current items do not fit its new schemas, and ApiError."""
    dataset = lock_dataset(dataset_id)
    apply_settings(dataset, columns)
    dataset.save()
    return dataset


def apply_settings(dataset: Dataset, columns: JSONObject) -> None:
    """Set columns of a locked dataset. Raise ConfigError if current items do not fit its new schemas."""
    columns = dict(columns)
    if (archived := columns.pop("archived", None)) is not None:
        dataset.archived_at = (dataset.archived_at or timezone.now()) if archived else None
    before = schemas_of(dataset)
    for name, value in columns.items():
        setattr(dataset, name, value)
    if not json_equal(before, schemas_of(dataset)):
        reject_invalid_items(dataset)
    dataset.updated_at = timezone.now()


def find_unknown_scorers(dataset: Dataset) -> list[UnknownName]:
    """Return the scorers of a dataset that do not exist. They may be registered later, so that they are not errors."""
    missing = {*missing_scorers(dataset.scorer_keys, dataset.owner_id)}
    message = "Scorer with id {} not found. Experiments that use it cannot start."
    keys = enumerate(dataset.scorer_keys)
    return [UnknownName(f"scorerIds[{number}]", key, message.format(key)) for number, key in keys if key in missing]
