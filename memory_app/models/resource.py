"""Resources: the owners of memories."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone


class Resource(models.Model):
    """The owner of memory inside a realm: an end user, a document, a room."""

    realm = models.CharField(max_length=136, editable=False, help_text="u12 for a user, osupport for a team.")
    key = models.CharField("resource ID", max_length=256, editable=False)
    # Set in the realm of a user, whose conversations are deleted with the account.
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, editable=False, related_name="memory_resources"
    )
    working_memory = models.TextField(null=True, editable=False)
    working_revision = models.PositiveIntegerField(default=0, db_default=0, editable=False)
    forgetting_since = models.DateTimeField(
        null=True, editable=False, help_text="Since when a job deletes its data. Nothing new is added to it meanwhile."
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering: ClassVar = ["realm", "key"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["realm", "key"], name="one_resource_per_realm_and_key")
        ]

    def __str__(self) -> str:
        return f"{self.key} in {self.realm}"
