"""Versions and activations for staff: a version is read, never changed but for its name, message and pin."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html

from access_app.roles import Role, has_role
from agents_app.models import Agent
from versions_app.models import Activation, AgentVersion


class ReadByRole:
    """Staff see the history of the agents that they may see."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        visible: QuerySet[Any] = super().get_queryset(request)  # type: ignore[misc]
        return visible.filter(agent__in=Agent.objects.for_user(request.user)).select_related("agent", "author")

    def has_module_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_active and request.user.is_staff)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_module_permission(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(AgentVersion)
class AgentVersionAdmin(ReadByRole, admin.ModelAdmin):
    list_display = (
        "agent",
        "version_number",
        "name",
        "change_message",
        "author_name",
        "source",
        "created_at",
        "pinned",
    )
    list_filter = ("source", "pinned", "created_at")
    search_fields = ("agent__id", "agent__name", "name", "change_message", "author_name")
    list_per_page = 50
    actions = ("make_live", "restore")
    readonly_fields = (
        "agent",
        "version_number",
        "picture",
        "changed_fields",
        "based_on",
        "author_name",
        "source",
        "created_at",
    )
    fields = ("name", "change_message", "pinned", *readonly_fields)

    def has_change_permission(self, request: HttpRequest, obj: AgentVersion | None = None) -> bool:
        """Editors may name and pin; the form shows nothing else to edit."""
        if not self.has_module_permission(request):
            return False
        return obj is None or has_role(request.user, Role.EDITOR, obj.agent.owner_id)

    @admin.display(description="Snapshot")
    def picture(self, version: AgentVersion) -> str:
        return format_html("<pre>{}</pre>", json.dumps(version.snapshot, indent=2, ensure_ascii=False))

    @admin.action(description="Make the selected version live")
    def make_live(self, request: HttpRequest, versions: QuerySet[AgentVersion]) -> None:
        for version in self._publishable(request, versions):
            version.activate()
            self.message_user(request, f"Version {version.version_number} of {version.agent_id} is live.")

    @admin.action(description="Restore the selected version as a new one")
    def restore(self, request: HttpRequest, versions: QuerySet[AgentVersion]) -> None:
        for version in self._publishable(request, versions):
            made = version.restore()
            self.message_user(request, f"{made.change_message}: version {made.version_number} of {version.agent_id}.")

    def _publishable(self, request: HttpRequest, versions: QuerySet[AgentVersion]) -> list[AgentVersion]:
        """The one selected version, where the member of staff may publish it."""
        chosen = list(versions)
        if len(chosen) != 1:
            self.message_user(request, "Select one version.", messages.ERROR)
            return []
        if not has_role(request.user, Role.PUBLISHER, chosen[0].agent.owner_id):
            self.message_user(request, "This needs the role publisher.", messages.ERROR)
            return []
        return chosen


@admin.register(Activation)
class ActivationAdmin(ReadByRole, admin.ModelAdmin):
    list_display = (
        "agent",
        "from_version_number",
        "to_version_number",
        "author_name",
        "source",
        "reason",
        "created_at",
    )
    list_filter = ("source", "created_at")
    search_fields = ("agent__id", "author_name", "reason")
    fields = list_display
