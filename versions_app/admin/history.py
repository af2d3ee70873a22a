"""The base of the admins of versions and activations."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest

from access_app.admin_base.staff_access import ReadOnlyAdmin
from access_app.permissions import has_role_everywhere
from access_app.role import Role
from agents_app.models import Agent


class HistoryAdmin(ReadOnlyAdmin):
    """Read-only history of the agents that the user may see."""

    linked_filters = ("agent__id",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request).select_related("agent", "author")
        if has_role_everywhere(request.user, Role.VIEWER):  # SQLite would search by agents, and sort all their rows
            return rows
        return rows.filter(agent__in=Agent.objects.for_user(request.user))
