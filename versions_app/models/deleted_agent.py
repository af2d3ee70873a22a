"""The record of a deleted agent, from which it can be restored."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import ClassVar, Self

from django.conf import settings
from django.db import models
from django.utils import timezone

from access_app.caller import Caller
from access_app.permissions import granted_role, has_role_everywhere, owner_ids_for
from access_app.role import Role
from agentcms.ids import uuid7


class DeletedAgentQuerySet(models.QuerySet["DeletedAgent"]):
    def for_user(self, user: Caller, role: Role = Role.VIEWER) -> Self:
        """Return the deleted agents of the owners for which the caller has at least the role, without the records."""
        visible = self if has_role_everywhere(user, role) else self.filter(owner_id__in=owner_ids_for(user, role))
        return visible.defer("record")

    def with_role(self, user: Caller) -> Self:
        """Annotate `granted`, the role that the owner granted the caller, for `require_granted_role()`."""
        return self.annotate(granted=granted_role(user, "owner_id"))

    def newest_ids(self, user: Caller, agent_ids: Sequence[str]) -> list[str]:
        """Return the IDs of the records of the agents that the user has just deleted."""
        records = self.filter(agent_key__in=agent_ids, deleted_by=user.pk).order_by("deleted_at")
        # An ID may have been deleted several times: the last one counts.
        newest = dict(records.values_list("agent_key", "pk"))
        return [str(newest[agent_id]) for agent_id in agent_ids if agent_id in newest]

    def expired(self) -> Self:
        """Return the deleted agents that have been in the trash for more than TRASH_DAYS."""
        return self.filter(deleted_at__lt=timezone.now() - timedelta(days=settings.TRASH_DAYS))


class DeletedAgent(models.Model):
    """A deleted agent with its versions and its live history, as one compressed record."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    # Not a foreign key: the ID is free, and another agent may have it.
    agent_key = models.CharField("agent ID", max_length=128, editable=False)
    name = models.CharField(max_length=200, editable=False)
    owner_id = models.CharField("team", max_length=128, blank=True, default="", editable=False)
    live_version_number = models.PositiveIntegerField(null=True, editable=False)
    version_count = models.PositiveIntegerField(editable=False)
    deleted_at = models.DateTimeField(default=timezone.now, editable=False)
    deleted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False, related_name="+"
    )
    deleted_by_name = models.CharField("deleted by", max_length=150, blank=True, default="", editable=False)
    record = models.BinaryField(editable=False)  # rows as JSON Lines, compressed by zlib

    granted: str | None  # the role that the owner granted the caller, from `with_role()`

    objects = DeletedAgentQuerySet.as_manager()

    class Meta:
        verbose_name = "deleted agent"
        ordering: ClassVar = ["-deleted_at", "-id"]
        indexes: ClassVar = [
            models.Index(fields=["owner_id", "-deleted_at"], name="deleted_of_owner"),
            models.Index(fields=["deleted_at"], name="deleted_at"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def removed_at(self) -> datetime:
        """The time after which the next nightly job removes the record."""
        return self.deleted_at + timedelta(days=settings.TRASH_DAYS)
