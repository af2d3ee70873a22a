"""The nightly clean-up of the agents' API."""

from __future__ import annotations

from django.db.models import QuerySet

from agents_app.models import IdempotencyRecord
from jobs_app.cleanup import expired_rows


@expired_rows("idempotency records")
def expired_idempotency_records() -> QuerySet[IdempotencyRecord]:
    """Return the idempotency records that are past their retention."""
    return IdempotencyRecord.objects.expired()
