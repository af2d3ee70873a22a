"""The nightly clean-up of histories: old entries of the live history, and the trash."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from jobs_app.cleanup import expired_rows
from versions_app.models import Activation, DeletedAgent


@expired_rows("activations")
def expired_activations() -> QuerySet[Activation]:
    """Return expired live history entries.

    Archived agents keep all entries, other agents the newest, which undo and retention need.
    """
    newer = Activation.objects.filter(agent=OuterRef("agent"), pk__gt=OuterRef("pk"))
    limit = timezone.now() - timedelta(days=settings.ACTIVATION_DAYS)
    return Activation.objects.filter(Exists(newer), created_at__lt=limit, agent__archived_at=None)


@expired_rows("deleted agents")
def expired_deleted_agents() -> QuerySet[DeletedAgent]:
    """Return the agents that have been in the trash for more than TRASH_DAYS."""
    return DeletedAgent.objects.expired()
