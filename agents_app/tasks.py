"""What the nightly clean-up forgets of the agents' API."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from agents_app.models import IdempotencyRecord
from jobs_app.cleanup import expired_rows


@expired_rows("kept answers")
def expired_idempotency_records() -> QuerySet[Any]:
    """Answers kept for repeats, past their days."""
    return IdempotencyRecord.objects.old()
