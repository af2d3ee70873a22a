"""Items of datasets and their versions."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Self

from django.db import models
from django.db.models import Q
from django.utils import timezone

from agentcms.ids import uuid7
from agentcms.wire.json_types import JSONObject
from agentcms.wire.names import to_wire
from evals_app.models.dataset import Dataset

ITEM_WIRE_NAMES = {"scorer_keys": "scorerIds"}


class DatasetItemQuerySet(models.QuerySet["DatasetItem"]):
    def not_purged_before(self, time: datetime) -> Self:
        """Filter to the items that were not yet purged at a time."""
        return self.filter(Q(purged_at=None) | Q(purged_at__gte=time))


class DatasetItem(models.Model):
    """An item of a dataset. Its versions have the contents."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    dataset = models.ForeignKey(Dataset, models.CASCADE, related_name="items", editable=False)
    # Null, not blank, without one: the constraint would allow a single blank one.
    external_id = models.CharField(max_length=200, null=True, editable=False)
    purged_at = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = DatasetItemQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["id"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["dataset", "external_id"], name="one_item_per_external_id")
        ]

    def __str__(self) -> str:
        return str(self.pk)


class ItemVersionQuerySet(models.QuerySet["ItemVersion"]):
    def at_version(self, version: int) -> Self:
        """Filter to the items as they were at a version of their dataset, without those that were deleted."""
        still = Q(to_version=None) | Q(to_version__gt=version)
        return self.filter(still, from_version__lte=version, is_deleted=False)

    def current(self) -> Self:
        return self.filter(to_version=None, is_deleted=False)


class ItemVersion(models.Model):
    """The content of an item between two versions of its dataset."""

    class Policy(models.TextChoices):
        """Calls of tools that no mock answers."""

        ALLOW = "allow", "Call the tool"
        DENY = "deny", "Fail the item"

    CONTENT_FIELDS: ClassVar = (
        "input",
        "ground_truth",
        "expected_trajectory",
        "tool_mocks",
        "unmocked_tool_policy",
        "scorer_keys",
        "request_context",
        "metadata",
        "source",
    )

    item = models.ForeignKey(DatasetItem, models.CASCADE, related_name="versions", editable=False)
    # The item has it too. Here it lets one query read the items of a version without a join.
    dataset = models.ForeignKey(Dataset, models.CASCADE, related_name="item_versions", editable=False)
    from_version = models.PositiveIntegerField(editable=False)
    to_version = models.PositiveIntegerField(null=True, editable=False, help_text="Blank: the current one.")
    is_deleted = models.BooleanField("deleted", default=False, editable=False)
    input = models.JSONField(null=True, editable=False)
    ground_truth = models.JSONField(null=True, editable=False)
    expected_trajectory = models.JSONField(null=True, editable=False)
    tool_mocks = models.JSONField(null=True, editable=False)
    unmocked_tool_policy = models.CharField(max_length=8, choices=Policy, default=Policy.ALLOW, editable=False)
    # An empty list is not null: it means that no scorer scores the item.
    scorer_keys = models.JSONField(null=True, editable=False, help_text="Null: those of the dataset.")
    request_context = models.JSONField(null=True, editable=False)
    metadata = models.JSONField(null=True, editable=False)
    source = models.JSONField(null=True, editable=False, help_text="Where the item comes from: type and reference.")
    # `db_default`, here and below: the previous release inserts rows without the column during an upgrade.
    text = models.TextField(blank=True, default="", db_default="", editable=False, help_text="What a search looks at.")
    resource_digest = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="The hash of the resource whose run it was made of.",
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = ItemVersionQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["item_id", "-from_version"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["item", "from_version"], name="one_item_version_per_change")
        ]
        indexes: ClassVar = [
            models.Index(fields=["dataset", "item"], name="item_current", condition=Q(to_version=None)),
            models.Index(fields=["dataset", "from_version"], name="item_version_of_dataset"),
            models.Index(fields=["resource_digest"], name="item_version_of_resource"),
        ]

    def __str__(self) -> str:
        return f"{self.item_id} since {self.from_version}"

    @property
    def content(self) -> JSONObject:
        """The fields that a change may set."""
        return {name: getattr(self, name) for name in self.CONTENT_FIELDS}

    @property
    def wire_content(self) -> JSONObject:
        """The same fields under the names of the API and of files."""
        return {ITEM_WIRE_NAMES.get(name) or to_wire(name): value for name, value in self.content.items()}
