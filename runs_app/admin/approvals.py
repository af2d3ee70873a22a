"""Read-only admin of approvals: who let which call happen."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html

from access_app.admin_base.lists import TeamColumnMixin
from access_app.admin_base.staff_access import ReadOnlyAdmin
from access_app.role import Role
from runs_app.admin.json_html import json_html
from runs_app.models import PendingCall

# The list shows none of them.
LARGE_COLUMNS = ("arguments", "arguments_schema", "payload", "resume_schema", "edited_arguments", "resume_data")


class LeastRoleFilter(admin.SimpleListFilter):
    """A filter by the least role that may decide."""

    title = "role"
    parameter_name = "role"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin[PendingCall]) -> list[tuple[str, str]]:
        return [(role.value, str(role.label)) for role in Role]

    def queryset(self, request: HttpRequest, queryset: QuerySet[PendingCall]) -> QuerySet[PendingCall]:
        return queryset.filter(role=self.value()) if self.value() else queryset


class DecisionSourceFilter(admin.ChoicesFieldListFilter):
    """A filter by where people decide."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = "source of the decision"


@admin.register(PendingCall)
class PendingCallAdmin(TeamColumnMixin, ReadOnlyAdmin):
    """Calls that wait for people, and decided ones. People decide them on their pages."""

    list_display = (
        "tool",
        "agent_key",
        "team",
        "state",
        "requested_by_name",
        "decided_by_name",
        "created_at",
        "decided_at",
    )
    list_filter = (
        "state",
        "kind",
        ("via", DecisionSourceFilter),
        LeastRoleFilter,
        "four_eyes",
        "created_at",
        "decided_at",
    )
    search_fields = ("tool", "agent_key", "owner_id", "requested_by_name", "decided_by_name", "reason", "call_id")
    ordering = ("-created_at", "-id")
    fields = (
        "page",
        "tool",
        "agent_key",
        "team",
        "kind",
        "state",
        "requested_by_name",
        "arguments_json",
        "payload_json",
        "least_role",
        "four_eyes",
        "decided_by_name",
        "decided_at",
        "decision_source",
        "reason",
        "edited_json",
        "answer_json",
        "created_at",
        "expires_at",
        "run_key",
        "root_id",
        "segment",
        "call_id",
        "mark",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[PendingCall]:
        return PendingCall.objects.for_user(request.user).defer(*LARGE_COLUMNS).order_by(*self.ordering)

    @admin.display(description="Page")
    def page(self, call: PendingCall) -> str:
        if call.kind == PendingCall.Kind.CHILD:
            return "–"
        return format_html('<a href="{0}">{0}</a>', reverse("runs:approval", args=[call.pk]))

    @admin.display(description="Source of the decision")
    def decision_source(self, call: PendingCall) -> str:
        return call.get_via_display() or "–"

    @admin.display(description="Role")
    def least_role(self, call: PendingCall) -> str:
        return Role(call.role).label

    @admin.display(description="Run ID")
    def run_key(self, call: PendingCall) -> str:
        return str(call.run_id)

    @admin.display(description="Arguments")
    def arguments_json(self, call: PendingCall) -> str:
        return json_html(call.arguments)

    @admin.display(description="Question")
    def payload_json(self, call: PendingCall) -> str:
        return json_html(call.payload)

    @admin.display(description="Edited arguments")
    def edited_json(self, call: PendingCall) -> str:
        return json_html(call.edited_arguments)

    @admin.display(description="Answer")
    def answer_json(self, call: PendingCall) -> str:
        return json_html(call.resume_data)
