"""Answers kept under the caller's `Idempotency-Key`, so that a repeat after a lost answer does nothing again."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, ClassVar

from django.conf import settings
from django.db import models, transaction
from django.utils import timezone

from agentcms.ids import random_key


def kept_since() -> datetime:
    """Answers from before this moment are forgotten."""
    return timezone.now() - timedelta(days=settings.IDEMPOTENCY_DAYS)


class IdempotencyRecordQuerySet(models.QuerySet["IdempotencyRecord"]):
    def claim(self, user: Any, key: str, fingerprint: str) -> IdempotencyRecord | None:
        """Take the key for this request, in the transaction that does the work; None where it is taken.

        While another request with the key is at work this waits for it.
        """
        fresh = IdempotencyRecord(user_id=user.pk, key=key, fingerprint=fingerprint)
        with transaction.atomic():
            self.filter(user_id=user.pk, key=key, created_at__lt=kept_since()).delete()
            IdempotencyRecord.objects.bulk_create([fresh], ignore_conflicts=True)
        # A row that was there already keeps its own fingerprint and token.
        return self.filter(user_id=user.pk, key=key, token=fresh.token).first()

    def old(self) -> models.QuerySet[IdempotencyRecord]:
        return self.filter(created_at__lt=kept_since())


class IdempotencyRecord(models.Model):
    """What a POST with an `Idempotency-Key` was answered; stored with the commit, so that a failed try leaves none."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    token = models.CharField(max_length=12, default=random_key)
    fingerprint = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(default=0)
    content = models.TextField(default="")
    etag = models.CharField(max_length=64, default="")
    created_at = models.DateTimeField(default=timezone.now, db_index=True)

    objects = IdempotencyRecordQuerySet.as_manager()

    class Meta:
        db_table = "agents_app_keptanswer"
        constraints: ClassVar = [models.UniqueConstraint(fields=["user", "key"], name="one_answer_per_key")]

    def __str__(self) -> str:
        return f"{self.key}: {self.status}"
