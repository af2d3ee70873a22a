"""Scorers that people keep as records, with their versions."""

from __future__ import annotations

from typing import ClassVar, Self

from django.core.validators import RegexValidator
from django.db import models
from django.utils import timezone

from access_app.owned_rows import OwnedQuerySet
from agentcms.db.text_conditions import any_contains_text
from agentcms.ids import uuid7
from agentcms.wire.json_types import JSONObject


class ScorerQuerySet(OwnedQuerySet["Scorer"]):
    """The scorers of teams, and the shared ones."""

    def with_text(self, text: str) -> Self:
        """Filter to the scorers whose ID, or name in the live version or the draft, contains a text."""
        columns = ("id", "live__snapshot__name", "head__snapshot__name")
        return self.filter(any_contains_text(columns, text))


class Scorer(models.Model):
    """A scorer. Its configuration is in its versions: live scores answers.

    A draft starts from head, and what is published starts from live.
    """

    id = models.CharField(
        "ID",
        primary_key=True,
        max_length=64,
        # `$` would accept a line break at the end.
        validators=[RegexValidator(r"^[a-z0-9][a-z0-9_-]*\Z", "Use lowercase letters, digits, '-' and '_'.")],
        help_text="Used in agents and in the API; cannot be changed.",
    )
    owner_id = models.CharField(
        "team", max_length=128, blank=True, default="", help_text="Blank: shared with every team."
    )
    live = models.ForeignKey("ScorerVersion", models.SET_NULL, null=True, editable=False, related_name="+")
    # Null only until the first version is stored, in the transaction that creates the scorer.
    head = models.ForeignKey("ScorerVersion", models.SET_NULL, null=True, editable=False, related_name="+")
    metadata = models.JSONField(default=dict, blank=True)
    created_by = models.CharField(max_length=150, blank=True, default="", editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(default=timezone.now, editable=False)

    granted: str | None  # from `with_role()`

    objects = ScorerQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["id"]
        indexes: ClassVar = [models.Index(fields=["owner_id"], name="scorer_owner")]

    def __str__(self) -> str:
        return self.name

    @property
    def configuration(self) -> JSONObject:
        """The configuration that lists show: the live one, or that of the draft."""
        version = self.live or self.head
        return version.snapshot if version is not None else {}

    @property
    def name(self) -> str:
        return str(self.configuration.get("name") or self.pk)


class ScorerVersion(models.Model):
    """An immutable configuration of a scorer, under wire names."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    scorer = models.ForeignKey(Scorer, models.CASCADE, related_name="versions", editable=False)
    version_number = models.PositiveIntegerField(editable=False)
    snapshot = models.JSONField(editable=False)
    changed_fields = models.JSONField(default=list, editable=False)
    change_message = models.CharField(max_length=500, blank=True, default="", editable=False)
    author_name = models.CharField(max_length=150, blank=True, default="", editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        verbose_name = "version of a scorer"
        verbose_name_plural = "versions of scorers"
        ordering: ClassVar = ["-version_number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["scorer", "version_number"], name="scorer_version_number")
        ]

    def __str__(self) -> str:
        return f"v{self.version_number}"


class DeletedScorer(models.Model):
    """The number of the last version of a scorer that was deleted, or of which a version was.

    Its scores stay, and name their version. A new version, also of a new scorer with its ID, has a higher number.
    """

    id = models.CharField("ID", primary_key=True, max_length=64, editable=False)
    version_number = models.PositiveIntegerField(editable=False)

    class Meta:
        verbose_name = "deleted scorer"

    def __str__(self) -> str:
        return f"{self.pk} until v{self.version_number}"
