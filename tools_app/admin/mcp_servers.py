"""Admin of MCP servers: add, test, list, compare definitions, replace headers and switch off."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.views.decorators.http import require_POST

from access_app.admin_base.concurrent_changes import LockedChangeMixin
from access_app.admin_base.lists import TeamColumnMixin, WithoutBulkDeletionMixin
from access_app.admin_base.staff_access import StaffAccessMixin
from access_app.admin_base.staff_roles import staff_has_role
from access_app.role import Role
from agentcms.errors import ApiError
from agentcms.plural import pluralize
from agentcms.web.template_context import TemplateContext
from agents_app.admin.refused_commands import RefusedCommandsMixin
from tools_app.admin.mcp_server_form import McpServerForm
from tools_app.admin.mcp_server_page import server_tool_rows
from tools_app.admin.used_by import used_by_context
from tools_app.admin.version_rows import configuration_version_rows
from tools_app.mcp.cached_servers import definitions_of, lock_server, server_unavailable_reason
from tools_app.mcp.listing import accept_definition, enqueue_listing, list_changed_server, switch_and_list
from tools_app.mcp.used_by import describe_loss, find_agents_using_server
from tools_app.mcp.versions import SERVER_SNAPSHOT_COLUMNS, Restored, get_server_version, restore_server_version
from tools_app.models import McpServer

EFFECT_ON_AGENTS = "will run without its tools"
MANAGERS_HINT = "Only a manager of its team can change a server or have its tools listed."
SECTIONS = (
    (None, ("key", "title", "description", "owner_id", "team", "is_enabled")),
    (
        "Connection",
        ("transport", "url", "command_key", "stored_headers", "headers", "delete_headers", "connect_timeout"),
    ),
    ("Tools", ("prefix", "approval", "call_timeout")),
)
# The fields after whose change a server may list other tools. Disabled servers are not listed.
LISTED_BY = {"url", "headers", "delete_headers", "transport", "command_key", "is_enabled"}
EDITED_COLUMNS = (*SERVER_SNAPSHOT_COLUMNS.values(), "owner_id", "encrypted_headers", "header_names", "updated_at")


@admin.register(McpServer)
class McpServerAdmin(
    TeamColumnMixin,
    WithoutBulkDeletionMixin,
    LockedChangeMixin,
    RefusedCommandsMixin,
    StaffAccessMixin,
    admin.ModelAdmin,
):
    """Admin of the servers of a user's teams. Managers change them; of the shared ones only managers of staff."""

    form = McpServerForm
    change_form_template = "admin/tools_app/mcpserver/change_form.html"
    list_display = ("title", "key", "team", "transport", "tool_count", "state", "listed_at")
    list_filter = ("transport", "is_enabled")
    search_fields = ("key", "title", "description")
    actions = ("enable", "disable", "list_tools_of_selected")
    action_roles: ClassVar = dict.fromkeys(actions, Role.MANAGER)

    def get_queryset(self, request: HttpRequest) -> QuerySet[McpServer]:
        # The definitions of a server may have a megabyte.
        return McpServer.objects.for_user(request.user).without_definitions()

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.has_module_permission(request) and staff_has_role(request, Role.MANAGER)

    def has_change_permission(self, request: HttpRequest, obj: McpServer | None = None) -> bool:
        return self.has_module_permission(request) and (obj is None or obj.editable_by(request.user))

    def has_delete_permission(self, request: HttpRequest, obj: McpServer | None = None) -> bool:
        return self.has_change_permission(request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: McpServer | None = None) -> tuple[str, ...]:
        return ("key", "stored_headers") if obj else ()

    def get_fields(self, request: HttpRequest, obj: McpServer | None = None) -> Any:
        fields = list(McpServerForm.Meta.fields)
        if obj is None:
            fields.remove("delete_headers")
            return fields
        if not self.has_change_permission(request, obj):
            # `team`, because the column is blank for Shared.
            return ["team", *(name for name in fields if name not in ("owner_id", "headers", "delete_headers"))]
        fields.insert(fields.index("headers"), "stored_headers")
        return fields

    def get_fieldsets(self, request: HttpRequest, obj: McpServer | None = None) -> Any:
        fields = self.get_fields(request, obj)
        return [(title, {"fields": sorted({*names} & {*fields}, key=names.index)}) for title, names in SECTIONS]

    def get_form(self, request: HttpRequest, obj: McpServer | None = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change, **kwargs)
        # The admin passes no arguments of ours to the form that it creates.
        return type("McpServerFormOfUser", (form,), {"user": request.user})

    def save_model(self, request: HttpRequest, obj: McpServer, form: McpServerForm, change: bool) -> None:
        # Not the other columns: a job may have stored the tools meanwhile.
        obj.save(update_fields=EDITED_COLUMNS if change else None)
        if obj.is_enabled and (not change or LISTED_BY & {*form.changed_data}):
            list_changed_server(obj, request.user)
            messages.info(request, "The tools are being listed. Reload this page in a moment.")
        is_moved = change and "owner_id" in form.changed_data
        if is_moved and (loss := describe_loss(request.user, obj, form.initial["owner_id"])):
            messages.warning(request, loss)
        for other in McpServer.objects.for_user(request.user).with_prefix_of(obj):
            messages.warning(
                request,
                f"{other} has the same prefix. Of two tools with the same name, an agent gets the one "
                "of the server whose ID comes first.",
            )

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        own = [
            path("<int:pk>/list/", view(self.list_tools), name="tools_app_mcpserver_list"),
            path("<int:pk>/accept/", view(self.accept), name="tools_app_mcpserver_accept"),
            path("<int:pk>/switch/", view(self.switch), name="tools_app_mcpserver_switch"),
            path("<int:pk>/restore/", view(self.restore), name="tools_app_mcpserver_restore"),
        ]
        return [*own, *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        row = self.get_object(request, unquote(object_id))
        context: TemplateContext = {}
        if row is not None:
            context = {
                "tools": server_tool_rows(row),
                "versions": configuration_version_rows(row, SERVER_SNAPSHOT_COLUMNS),
                **used_by_context(request.user, find_agents_using_server(row), EFFECT_ON_AGENTS),
            }
            context["may_change"] = self.has_change_permission(request, row)
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), **context})

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Delete a server, after a question that names the agents that use it."""
        row = self.get_object(request, unquote(object_id))
        context = dict(extra_context or {})
        if row is not None:
            context |= used_by_context(request.user, find_agents_using_server(row), EFFECT_ON_AGENTS)
        return super().delete_view(request, object_id, context)

    @method_decorator(require_POST)
    def list_tools(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Test the connection and list the tools in a job, whose page shows the result."""
        row = self.get_changeable(request, pk)
        job = enqueue_listing(row, request.user)
        link = format_html('<a href="{}">{}</a>', reverse("admin:tools_app_mcpserver_change", args=[pk]), row)
        messages.info(request, format_html("The tools of {} are being listed. Reload this page in a moment.", link))
        return redirect("admin:jobs_app_job_change", job.pk)

    @method_decorator(require_POST)
    def accept(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Offer the changed definition of a tool to agents."""
        row = self.get_changeable(request, pk)
        name = request.POST.get("tool", "")
        try:
            accept_definition(row.pk, name, request.POST.get("hash", ""), request.user)
        except ApiError as error:
            messages.error(request, error.error)
        else:
            messages.success(request, f"Agents can use the new definition of '{name}'.")
        return redirect("admin:tools_app_mcpserver_change", pk)

    @method_decorator(require_POST)
    def switch(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Enable or disable a server. All processes follow within a second."""
        self.get_changeable(request, pk)
        try:
            # The state that the button names: on a page that is not up to date, it is that of the server already.
            row, reason = switch_and_list(pk, request.POST.get("enabled") == "yes", request.user)
        except ApiError as error:
            messages.error(request, error.error)
            return redirect("admin:tools_app_mcpserver_changelist")
        words = "enabled" if row.is_enabled else "disabled. Agents can no longer use its tools"
        if reason:
            messages.error(request, reason)
        else:
            messages.success(request, f"{row.title} is {words}.")
        return redirect("admin:tools_app_mcpserver_change", pk)

    @method_decorator(require_POST)
    def restore(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Give a server the configuration of an earlier version, as a new version."""
        self.get_changeable(request, pk)
        try:
            with transaction.atomic():
                row = lock_server(pk)
                if not self.has_change_permission(request, row):  # it may have moved to another team
                    raise PermissionDenied
                restored = restore_server_version(row, get_server_version(row, request.POST.get("version", "")))
                if restored.needs_listing:
                    list_changed_server(row, request.user)
        except ApiError as error:
            messages.error(request, error.error)
        except ValidationError as error:
            messages.error(request, f"This version cannot be restored: {' '.join(error.messages)}")
        else:
            report_restored(request, restored)
        return redirect("admin:tools_app_mcpserver_change", pk)

    def get_changeable(self, request: HttpRequest, pk: int) -> McpServer:
        """Return a server that the user may change. Raise Http404 or PermissionDenied."""
        row = self.get_queryset(request).filter(pk=pk).first()
        if row is None:
            raise Http404
        if not self.has_change_permission(request, row):
            raise PermissionDenied
        return row

    @admin.action(description="Enable selected servers")
    def enable(self, request: HttpRequest, servers: QuerySet[McpServer]) -> None:
        self.set_enabled(request, servers, True)

    @admin.action(description="Disable selected servers")
    def disable(self, request: HttpRequest, servers: QuerySet[McpServer]) -> None:
        self.set_enabled(request, servers, False)

    def set_enabled(self, request: HttpRequest, servers: QuerySet[McpServer], is_enabled: bool) -> None:
        """Enable or disable servers. Report those that cannot be enabled, such as without a sandbox."""
        rows = [row for row in servers if row.editable_by(request.user)]
        reasons = [reason for row in rows if (reason := self.try_to_switch(request, row, is_enabled))]
        for reason in reasons:
            messages.error(request, reason)
        state = "enabled." if is_enabled else "disabled."
        # The reasons above are all that is to say if the user may change each of the servers.
        hint = MANAGERS_HINT if len(rows) < len(servers) else ""
        self.report_action(request, len(rows) - len(reasons), len(servers), "server", state, hint)

    @staticmethod
    def try_to_switch(request: HttpRequest, row: McpServer, is_enabled: bool) -> str:
        """Enable or disable a server. Return the reason why that is not possible, or a blank text."""
        try:
            return switch_and_list(row.pk, is_enabled, request.user)[1]
        except ApiError as error:
            return error.error

    @admin.action(description="List the tools of selected servers")
    def list_tools_of_selected(self, request: HttpRequest, servers: QuerySet[McpServer]) -> None:
        rows = [row for row in servers if row.editable_by(request.user)]
        for row in rows:
            enqueue_listing(row, request.user)
        self.report_action(request, len(rows), len(servers), "server", "queued for the listing.", MANAGERS_HINT)

    @admin.display(description="tools")
    def tool_count(self, row: McpServer) -> int:
        return len(definitions_of(row).tools)

    @admin.display
    def state(self, row: McpServer) -> str:
        if not row.is_enabled:
            return "Disabled"
        if reason := server_unavailable_reason(row, row.headers):
            return reason
        if row.list_error:
            return row.list_error
        if changed := len(definitions_of(row).changed):
            return f"{pluralize(changed, 'changed tool')} to accept"
        return "Ready" if row.listed_at else "Not listed yet"

    @admin.display(description="stored headers")
    def stored_headers(self, row: McpServer) -> str:
        return format_html("<span>{}</span>", ", ".join(row.header_names) or "None")


def report_restored(request: HttpRequest, restored: Restored) -> None:
    number = restored.server.last_version_number
    messages.success(request, f"Version {number} has the restored configuration.")
    if restored.deleted_headers:
        names = ", ".join(restored.deleted_headers)
        messages.warning(
            request, f"The address changed, so the stored headers were deleted: {names}. Enter them again."
        )
