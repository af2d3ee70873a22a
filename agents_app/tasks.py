"""What the nightly clean-up forgets of the agents' API."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from agents_app.models import KeptAnswer
from jobs_app.cleanup import cleaned


@cleaned("kept answers")
def old_answers() -> QuerySet[Any]:
    """Answers kept for repeats, past their days."""
    return KeptAnswer.objects.old()
