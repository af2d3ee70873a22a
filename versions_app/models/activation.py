"""The live history of an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.utils import timezone

from agents_app.editing.archive_guard import reject_archived
from agents_app.editing.change_context import Source, change, current_change
from agents_app.models import Agent
from agents_app.models.agent import copy_fields

if TYPE_CHECKING:
    from versions_app.models import AgentVersion


LIVE_MOVED_SINCE_MESSAGE = (
    "The live version changed in the meantime. Reload the live history and roll back its newest entry."
)


class CannotUndo(ValidationError):
    """A move of live or the draft cannot be undone. Codes: `nothing_before`, `moved`, `pruned`."""


class Activation(models.Model):
    """A move of the live pointer. It stores versions as plain values, so that it outlives pruned ones."""

    # No index of its own: `activation_newest` serves.
    agent = models.ForeignKey(Agent, models.CASCADE, related_name="activations", editable=False, db_index=False)
    from_version_id = models.UUIDField(null=True, editable=False)
    from_version_number = models.PositiveIntegerField(null=True, editable=False)
    to_version_id = models.UUIDField(editable=False)
    to_version_number = models.PositiveIntegerField(editable=False)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False, related_name="+")
    author_name = models.CharField("author", max_length=150, blank=True, default="", editable=False)
    source = models.CharField(max_length=16, choices=Source, default=Source.CODE, editable=False)
    reason = models.CharField(max_length=500, blank=True, default="", editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        verbose_name = "live history entry"
        verbose_name_plural = "live history"
        ordering: ClassVar = ["-id"]
        indexes: ClassVar = [
            models.Index(fields=["agent", "-id"], name="activation_newest"),
            models.Index(fields=["to_version_id"], name="activation_of_version"),
        ]

    def __str__(self) -> str:
        return f"{self.agent_id}: {self.live_change}"

    @property
    def live_change(self) -> str:
        """The number that was live before, if any, and the number that is live since."""
        before = f"v{self.from_version_number}\u00a0→\u00a0" if self.from_version_number else ""
        return f"{before}v{self.to_version_number}"

    def undo(self) -> AgentVersion:
        """Publish the version that was live before this move, and return it. Raise CannotUndo."""
        with transaction.atomic():
            row = Agent.objects.get_locked(self.agent_id)
            version = self.undo_locked(row)
        copy_fields(self.agent, row)
        return version

    def undo_locked(self, row: Agent) -> AgentVersion:
        """Do what `undo` does for a row that `get_locked()` locked in this transaction."""
        reject_archived(row)
        # Only the newest: an older move says nothing about what is live now.
        if row.activations.values_list("pk", flat=True).first() != self.pk:
            raise CannotUndo(LIVE_MOVED_SINCE_MESSAGE, code="moved")
        if self.from_version_id is None:
            raise CannotUndo(
                "No version was live before this one, so there is nothing to roll back to.", code="nothing_before"
            )
        version = row.versions.filter(pk=self.from_version_id).first()
        if version is None:
            raise CannotUndo(
                f"Version {self.from_version_number} was live before, but was deleted. Publish another version.",
                code="pruned",
            )
        with change(message=current_change().message or self.undo_summary(version)):
            version.activate_locked(row)
        return version

    def undo_summary(self, version: AgentVersion) -> str:
        """Return a sentence without its full stop. The undo of a roll-back leads to a newer version."""
        number = version.version_number
        return f"v{number} is live again" if number > self.to_version_number else f"Rolled back to v{number}"
