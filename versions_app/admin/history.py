"""The base of the admins of versions and activations."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest

from access_app.admin_access import ReadOnlyAdmin
from agents_app.models import Agent


class HistoryAdmin(ReadOnlyAdmin):
    """Read-only history of the agents that the user may see."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        visible: QuerySet[Any] = super().get_queryset(request)
        return visible.filter(agent__in=Agent.objects.for_user(request.user)).select_related("agent", "author")
