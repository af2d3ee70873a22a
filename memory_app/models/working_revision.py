"""Revisions of working memory."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone

from memory_app.models.resource import Resource
from memory_app.models.thread import Thread


class WorkingRevision(models.Model):
    """One of the last values of the working memory of a resource or a thread."""

    resource = models.ForeignKey(Resource, models.CASCADE, null=True, editable=False, related_name="working_revisions")
    thread = models.ForeignKey(Thread, models.CASCADE, null=True, editable=False, related_name="working_revisions")
    revision = models.PositiveIntegerField(editable=False)
    value = models.TextField(null=True, editable=False)
    run_id = models.UUIDField(null=True, editable=False)  # not a foreign key: runs are deleted earlier
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering: ClassVar = ["-revision"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["resource", "revision"], name="one_working_revision_of_resource"),
            models.UniqueConstraint(fields=["thread", "revision"], name="one_working_revision_of_thread"),
        ]

    def __str__(self) -> str:
        return f"revision {self.revision}"
