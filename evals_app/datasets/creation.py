"""The creation of datasets, and the check of their items by new schemas."""

from __future__ import annotations

import re
import secrets
import unicodedata

from django.db import IntegrityError, transaction

from agentcms.wire.json_types import JSONObject
from agents_app.configuration.schema import ConfigError, Issue
from evals_app.datasets.changes import validator_of
from evals_app.models import Dataset, ItemVersion

MAX_SLUG = 48  # leaves room for a suffix in `MAX_DATASET_ID_LENGTH`
MAX_ISSUES = 20
ROUTES = frozenset({"cluster-failures"})  # below /api/datasets


def create_dataset(columns: JSONObject) -> Dataset:
    """Create a dataset whose ID comes from its name. If the ID is taken, it gets a suffix."""
    slug = derive_id(columns["name"])
    for _ in range(5):
        try:
            # A savepoint: after the error, PostgreSQL would refuse all other statements of the transaction.
            with transaction.atomic():
                return Dataset.objects.create(pk=slug, **columns)
        except IntegrityError:
            slug = f"{derive_id(columns['name'])}-{secrets.token_hex(4)}"
    raise RuntimeError("No free ID was found for a dataset.")


def derive_id(name: str) -> str:
    """Return the ID for a name: lowercase letters, digits and '-'."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:MAX_SLUG].strip("-") or "dataset"
    return f"{slug}-1" if slug in ROUTES else slug


def reject_invalid_items(dataset: Dataset) -> None:
    """Raise ConfigError if the current items do not fit the schemas of their dataset."""
    validator = validator_of(dataset)
    issues: list[Issue] = []
    for version in ItemVersion.objects.current().filter(dataset=dataset).iterator(500):
        issues += validator.issues(version.content, f"items.{version.item_id}")
        if len(issues) >= MAX_ISSUES:
            break
    if issues:
        raise ConfigError(issues[:MAX_ISSUES])
