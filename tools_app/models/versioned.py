"""Rows whose configuration has a history: each change of it becomes a version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.utils import timezone

from agentcms.wire.canonical import json_equal
from agentcms.wire.json_types import JSONObject
from agents_app.editing.change_context import Source, change, current_change

if TYPE_CHECKING:
    from django.db.models.fields.related_descriptors import RelatedManager


class ConfigurationVersion(models.Model):
    """A copy of a configuration, without secrets. The related name of the foreign key to its row is `versions`."""

    version_number = models.PositiveIntegerField()
    snapshot = models.JSONField()
    # No foreign key: the name stays when the account is deleted.
    author_name = models.CharField(max_length=150, blank=True, default="")
    source = models.CharField(max_length=16, choices=Source, default=Source.CODE)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        abstract = True
        ordering: ClassVar = ["-version_number"]

    def __str__(self) -> str:
        return f"v{self.version_number}"


class VersionedConfiguration(models.Model):
    """A row that writes a version whenever its `snapshot` changes. The last AGENT_VERSION_LIMIT of them stay."""

    last_version_number = models.PositiveIntegerField(default=0, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(default=timezone.now, editable=False)

    if TYPE_CHECKING:
        versions: RelatedManager[Any]

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Write the row, and a version if the configuration differs from the last one."""
        self.updated_at = timezone.now()
        with transaction.atomic():
            super().save(*args, **kwargs)
            self._record_version()

    @property
    def snapshot(self) -> JSONObject:
        """The configuration under wire names, without secrets."""
        raise NotImplementedError

    def read_snapshot(self, snapshot: JSONObject, columns: Mapping[str, str]) -> None:
        """Set the column of each member of a snapshot. What the snapshot lacks stays."""
        for member, column in columns.items():
            setattr(self, column, snapshot.get(member, getattr(self, column)))

    def run_checks(self, checks: Mapping[str, Callable[[], None]]) -> None:
        """Call the check of each field. Raise ValidationError with what all of them refuse."""
        errors: dict[str, object] = {}
        for field, check in checks.items():
            try:
                check()
            except ValidationError as error:
                errors[field] = error
        if errors:
            raise ValidationError(errors)

    def save_restored(self) -> None:
        """Write an earlier configuration as a new version. Raise ValidationError by field if it is not valid now."""
        self.full_clean()
        with change(source=Source.RESTORE), transaction.atomic():
            self.save()

    def _record_version(self) -> None:
        # Changes lock the row first. Otherwise two at once would take one number, and the second would fail.
        last = self.versions.first()
        snapshot = self.snapshot
        if last is not None and json_equal(last.snapshot, snapshot):
            return
        current = current_change()
        author = current.actor
        self.last_version_number = 1 if last is None else last.version_number + 1
        self.versions.create(
            version_number=self.last_version_number,
            snapshot=snapshot,
            author_name=author.get_username() if author else "",
            source=current.source,
        )
        self.versions.filter(version_number__lte=self.last_version_number - settings.AGENT_VERSION_LIMIT).delete()
        # Not by `save`, which would come here again.
        type(self)._default_manager.filter(pk=self.pk).update(last_version_number=self.last_version_number)
