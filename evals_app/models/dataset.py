"""Datasets: questions for agents, with the answers that people expect."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import ClassVar, Self

from django.core.validators import RegexValidator
from django.db import models
from django.utils import timezone

from access_app.owned_rows import OwnedQuerySet
from evals_app.models.text_lists import list_has

MAX_DATASET_ID_LENGTH = 64


class DatasetQuerySet(OwnedQuerySet["Dataset"]):
    """The datasets of teams, and the shared ones."""

    def for_any_target(self, target_ids: Iterable[str]) -> Self:
        """Filter to the datasets that are for one of these targets."""
        return self.filter(reduce(or_, (list_has("target_ids", key) for key in target_ids)))


class Dataset(models.Model):
    """A list of items whose every change is a version.

    `version` counts the changes of items. An experiment that names a version reads the same items later.
    """

    id = models.CharField(
        "ID",
        primary_key=True,
        max_length=MAX_DATASET_ID_LENGTH,
        # `$` would accept a line break at the end.
        validators=[RegexValidator(r"^[a-z0-9][a-z0-9_-]*\Z", "Use lowercase letters, digits, '-' and '_'.")],
        help_text="Used in URLs and the API; cannot be changed.",
    )
    # No foreign key: a team has no row, it exists by its memberships.
    owner_id = models.CharField(
        "team", max_length=128, blank=True, default="", help_text="Blank: shared with every team."
    )
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True, default="")
    input_schema = models.JSONField(null=True, blank=True, help_text="JSON Schema of the inputs.")
    ground_truth_schema = models.JSONField(null=True, blank=True, help_text="JSON Schema of the ground truths.")
    request_context_schema = models.JSONField(null=True, blank=True, help_text="JSON Schema of the request contexts.")
    scorer_keys = models.JSONField(default=list, blank=True, help_text="Scorers of experiments that name none.")
    tags = models.JSONField(default=list, blank=True)
    metadata = models.JSONField(default=dict, blank=True)
    target_type = models.CharField(max_length=16, blank=True, default="")
    # IDs instead of relations: workflows, and scorers in code, have no rows.
    target_ids = models.JSONField("agents", default=list, blank=True, help_text="The agents that the dataset is for.")
    version = models.PositiveIntegerField(default=0, editable=False)
    # Updated by each change of items, so that lists and the limit of items need no count.
    item_count = models.PositiveIntegerField(default=0, editable=False)
    archived_at = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(default=timezone.now, editable=False)

    granted: str | None  # from `with_role()`

    objects = DatasetQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["name", "id"]
        indexes: ClassVar = [models.Index(fields=["owner_id"], name="dataset_owner")]

    def __str__(self) -> str:
        return self.name
