"""Admin of ACP agents, their workspaces and what people allowed them. Only for superusers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Field, Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.views.decorators.http import require_POST

from access_app.admin_base.concurrent_changes import LockedChangeMixin
from access_app.admin_base.lists import CheckedListMixin, TeamColumnMixin, WithoutBulkDeletionMixin
from access_app.admin_base.team_fields import offer_teams
from agentcms.errors import ApiError
from agentcms.web.template_context import TemplateContext
from agents_app.admin.refused_commands import RefusedCommandsMixin
from tools_app.acp.cached_agents import acp_unavailable_reason, lock_acp_row, switch_agent
from tools_app.acp.used_by import find_agents_using_acp_agent
from tools_app.acp.versions import ACP_SNAPSHOT_COLUMNS, get_acp_version, restore_acp_version
from tools_app.admin.acp_agent_form import AcpAgentForm
from tools_app.admin.used_by import used_by_context
from tools_app.admin.version_rows import configuration_version_rows
from tools_app.models import AcpAgent, AcpPermission, AcpWorkspace

WORKSPACE_FILES_STAY = (
    "Its files stay in its folder on the server. A new workspace of the same team and name has them again."
)


class SuperuserAdmin(LockedChangeMixin, CheckedListMixin, admin.ModelAdmin):
    """An admin that nobody but superusers sees: it decides what runs on this machine."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_active and request.user.is_superuser)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.has_module_permission(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.has_module_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.has_module_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.has_module_permission(request)


@admin.register(AcpAgent)
class AcpAgentAdmin(WithoutBulkDeletionMixin, RefusedCommandsMixin, SuperuserAdmin):
    """Admin of ACP agents: policy, limits, environment, and switching off."""

    form = AcpAgentForm
    change_form_template = "admin/tools_app/acpagent/change_form.html"
    list_display = ("title", "key", "command_key", "permissions", "state", "updated_at")
    list_filter = ("permissions", "is_enabled")
    search_fields = ("key", "title", "description")
    actions = ("enable", "disable")

    def get_readonly_fields(self, request: HttpRequest, obj: AcpAgent | None = None) -> tuple[str, ...]:
        return ("key", "stored_environment") if obj else ()

    def get_fields(self, request: HttpRequest, obj: AcpAgent | None = None) -> Any:
        fields = list(AcpAgentForm.Meta.fields)
        if obj is None:
            fields.remove("delete_environment")
        else:
            fields.insert(fields.index("environment"), "stored_environment")
        return fields

    def displayed_beside_columns(self, row: AcpAgent) -> object:
        return row.limits

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        own = [
            path("<int:pk>/switch/", view(self.switch), name="tools_app_acpagent_switch"),
            path("<int:pk>/restore/", view(self.restore), name="tools_app_acpagent_restore"),
        ]
        return [*own, *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        row = self.get_object(request, unquote(object_id))
        context: TemplateContext = {}
        if row is not None:
            context = {
                "versions": configuration_version_rows(row, ACP_SNAPSHOT_COLUMNS),
                **acp_used_by_context(request, row),
            }
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), **context})

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Delete an ACP agent, after a question that names the agents that use it."""
        row = self.get_object(request, unquote(object_id))
        context = acp_used_by_context(request, row) if row is not None else {}
        return super().delete_view(request, object_id, {**(extra_context or {}), **context})

    @method_decorator(require_POST)
    def switch(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Enable or disable an agent. All processes follow within a second."""
        if not (self.has_module_permission(request) and AcpAgent.objects.filter(pk=pk).exists()):
            raise Http404
        # The state that the button names: on a page that is not up to date, it is that of the agent already.
        self.switch_and_report(request, pk, request.POST.get("enabled") == "yes")
        return redirect("admin:tools_app_acpagent_change", pk)

    @method_decorator(require_POST)
    def restore(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Give an agent the configuration of an earlier version, as a new version."""
        if not (self.has_module_permission(request) and AcpAgent.objects.filter(pk=pk).exists()):
            raise Http404
        try:
            with transaction.atomic():
                row = lock_acp_row(pk)
                deleted = restore_acp_version(row, get_acp_version(row, request.POST.get("version", "")))
        except ApiError as error:
            messages.error(request, error.error)
        except ValidationError as error:
            messages.error(request, f"This version cannot be restored: {' '.join(error.messages)}")
        else:
            messages.success(request, f"Version {row.last_version_number} has the restored configuration.")
            if deleted:
                text = f"The command changed, so the stored environment was deleted: {', '.join(deleted)}."
                messages.warning(request, f"{text} Enter it again.")
        return redirect("admin:tools_app_acpagent_change", pk)

    @admin.action(description="Enable selected ACP agents")
    def enable(self, request: HttpRequest, agents: QuerySet[AcpAgent]) -> None:
        self.set_enabled(request, agents, True)

    @admin.action(description="Disable selected ACP agents")
    def disable(self, request: HttpRequest, agents: QuerySet[AcpAgent]) -> None:
        self.set_enabled(request, agents, False)

    def set_enabled(self, request: HttpRequest, agents: QuerySet[AcpAgent], is_enabled: bool) -> None:
        """Enable or disable agents. Report those that cannot be enabled, such as without a sandbox."""
        # One by one: each change becomes a version, which `update()` would not write.
        for row in agents:
            self.switch_and_report(request, row.pk, is_enabled)

    @staticmethod
    def switch_and_report(request: HttpRequest, pk: int, is_enabled: bool) -> None:
        """Enable or disable an agent. Show that, or the reason why not."""
        try:
            row, reason = switch_agent(pk, is_enabled)
        except ApiError as error:
            messages.error(request, error.error)
            return
        if reason:
            messages.error(request, reason)
            return
        words = "enabled" if row.is_enabled else "disabled. Agents can no longer use it"
        messages.success(request, f"{row.title} is {words}.")

    @admin.display
    def state(self, row: AcpAgent) -> str:
        if not row.is_enabled:
            return "Disabled"
        return acp_unavailable_reason(row, row.environment) or "Ready"

    @admin.display(description="stored environment")
    def stored_environment(self, row: AcpAgent) -> str:
        return format_html("<span>{}</span>", ", ".join(row.environment_names) or "None")


def acp_used_by_context(request: HttpRequest, row: AcpAgent) -> TemplateContext:
    """Return the agents that use an ACP agent."""
    return used_by_context(request.user, find_agents_using_acp_agent(row), "will run without it")


@admin.register(AcpWorkspace)
class AcpWorkspaceAdmin(TeamColumnMixin, SuperuserAdmin):
    """Admin of the named workspaces of teams. Its folder has its team and name, so neither is changed."""

    list_display = ("name", "team", "created_at")
    search_fields = ("owner_id", "name")
    fields = ("owner_id", "name")

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def get_fields(self, request: HttpRequest, obj: AcpWorkspace | None = None) -> Any:
        return ("team", "name", "created_at") if obj else self.fields

    def get_readonly_fields(self, request: HttpRequest, obj: AcpWorkspace | None = None) -> Any:
        return ("team", "created_at") if obj else ()

    def get_deleted_objects(self, objs: Iterable[AcpWorkspace], request: HttpRequest) -> Any:
        """Name the ACP agents that lose a workspace, and say what becomes of its files."""
        rows = [*objs]
        deleted, counts, lacking, protected = super().get_deleted_objects(rows, request)
        users = AcpAgent.objects.filter(workspace__in=[row.name for row in rows])
        if users:
            names = ", ".join(map(str, users))
            deleted = [*deleted, f"ACP agents that work in it will refuse the tasks of its team: {names}."]
        return [*deleted, WORKSPACE_FILES_STAY], counts, lacking, protected

    def formfield_for_dbfield(self, db_field: Field, request: HttpRequest, **kwargs: Any) -> Any:
        """Offer the teams, instead of a field for any text."""
        field: Any = super().formfield_for_dbfield(db_field, request, **kwargs)
        if db_field.name == "owner_id":
            offer_teams(field, request.user, *AcpWorkspace.objects.values_list("owner_id", flat=True))
        return field


@admin.register(AcpPermission)
class AcpPermissionAdmin(TeamColumnMixin, SuperuserAdmin):
    """Admin of what people allowed for whole conversations. Deleting one takes the permission back."""

    list_display = ("title", "agent", "team", "thread", "option_kind", "decided_by_name", "created_at")
    list_filter = ("agent",)
    fields = (*list_display, "mark")

    def get_queryset(self, request: HttpRequest) -> QuerySet[AcpPermission]:
        return super().get_queryset(request).select_related("agent", "thread")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False
