"""Permissions of ACP agents for whole conversations."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone

from memory_app.models import Thread


class AcpPermission(models.Model):
    """The answer to each equal request for permission of an agent in a conversation. Deleting it takes it back.

    It counts for the agents of one team, because those of another work in another folder.
    """

    agent = models.ForeignKey("tools_app.AcpAgent", models.CASCADE, related_name="granted_permissions")
    thread = models.ForeignKey(Thread, models.CASCADE, related_name="+")
    # `db_default`: the previous release inserts rows without the column during an upgrade.
    owner_id = models.CharField("team", max_length=128, blank=True, default="", db_default="")
    mark = models.CharField(max_length=64)  # the hash of the request
    title = models.CharField(max_length=200)
    option_kind = models.CharField("answer", max_length=32)  # such as allow_always
    decided_by_name = models.CharField("decided by", max_length=150, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = "permission of an ACP agent"
        verbose_name_plural = "permissions of ACP agents"
        ordering: ClassVar = ["-created_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["thread", "agent", "owner_id", "mark"], name="acp_permission_of_owner")
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def is_allowed(self) -> bool:
        return self.option_kind.startswith("allow")
