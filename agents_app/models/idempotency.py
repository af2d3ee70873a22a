"""The record of a request with an `Idempotency-Key`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar

from django.conf import settings
from django.db import models, transaction
from django.utils import timezone

from agentcms.ids import random_key


def oldest_valid_time() -> datetime:
    """Return the time before which records are expired."""
    return timezone.now() - timedelta(days=settings.IDEMPOTENCY_DAYS)


class IdempotencyRecordQuerySet(models.QuerySet["IdempotencyRecord"]):
    def claim(self, user_id: int, key: str, fingerprint: str) -> IdempotencyRecord | None:
        """Create the record of a request in its transaction. Return None if the user's key has one.

        Wait for a concurrent request with the same key.
        """
        record = IdempotencyRecord(user_id=user_id, key=key, fingerprint=fingerprint)
        with transaction.atomic():
            # The nightly clean-up may not have run since the key expired.
            self.expired().filter(user_id=user_id, key=key).delete()
            IdempotencyRecord.objects.bulk_create([record], ignore_conflicts=True)
        # A row that existed has another token.
        return self.filter(user_id=user_id, key=key, token=record.token).first()

    def find(self, user_id: int, key: str) -> IdempotencyRecord | None:
        """Return the record of a user's key, or None."""
        return self.filter(user_id=user_id, key=key).first()

    def expired(self) -> models.QuerySet[IdempotencyRecord]:
        """Return the records that are older than IDEMPOTENCY_DAYS."""
        return self.filter(created_at__lt=oldest_valid_time())


class IdempotencyRecord(models.Model):
    """The response to a POST with an `Idempotency-Key`, or the reference of one. A failed request leaves none.

    It is committed with the work. Only that of a request that acts outside of the database is committed before.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    token = models.CharField(max_length=12, default=random_key)
    fingerprint = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(default=0)  # 0 or SENT until there is a response
    content = models.TextField(default="")
    etag = models.CharField(max_length=64, default="")
    # A replay needs the role that the request needed. Blank: none. Null: unknown, as an older release stores it.
    role = models.CharField(max_length=16, null=True)
    owner_id = models.CharField(max_length=128, default="", db_default="")
    created_at = models.DateTimeField(default=timezone.now, db_index=True)

    # The status of a request that acts outside of the database, from when nobody can take back what it sends.
    SENT: ClassVar = 1

    objects = IdempotencyRecordQuerySet.as_manager()

    class Meta:
        db_table = "agents_app_keptanswer"
        constraints: ClassVar = [models.UniqueConstraint(fields=["user", "key"], name="one_answer_per_key")]

    def __str__(self) -> str:
        return f"{self.key}: {self.status}"

    @property
    def has_response(self) -> bool:
        return self.status > self.SENT
