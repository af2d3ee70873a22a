"""Read-only admin of runs. Runs are stopped on their page and through the API."""

from __future__ import annotations

import json

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html

from access_app.admin_access import ReadOnlyAdmin
from runs_app.models import AgentRun

DETAIL_FIELDS = ("agent_owner_id", "error", "warnings")


@admin.register(AgentRun)
class RunAdmin(ReadOnlyAdmin):
    """Runs with their input, output and status."""

    list_display = ("agent_key", "version_label", "status", "requested_by_name", "tokens", "created_at", "finished_at")
    list_filter = ("status", "target", "is_demo", "created_at")
    search_fields = ("agent_key", "requested_by_name", "error")
    date_hierarchy = "created_at"
    fields = (
        "agent_key",
        "owner_id",
        "agent_owner_id",
        "page",
        "status",
        "error",
        "version_label",
        "requested_by_name",
        "input_json",
        "output",
        "finish_reason",
        "usage",
        "cost",
        "is_demo",
        "warnings",
        "created_at",
        "started_at",
        "first_text_at",
        "finished_at",
        "cancel_requested_at",
        "lease_until",
        "holder",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[AgentRun]:
        return AgentRun.objects.for_user(request.user).with_roles(request.user)

    def get_fields(self, request: HttpRequest, obj: AgentRun | None = None) -> tuple[str, ...]:
        """Return the fields of the page. Former members see only the question and the answer of their own runs."""
        if obj is None or obj.details_visible_to(request.user):
            return self.fields
        return tuple(name for name in self.fields if name not in DETAIL_FIELDS)

    @admin.display(description="Version")
    def version_label(self, run: AgentRun) -> str:
        return run.version_label

    @admin.display(description="Tokens")
    def tokens(self, run: AgentRun) -> str:
        return str(run.usage.get("totalTokens", "–"))

    @admin.display(description="Input")
    def input_json(self, run: AgentRun) -> str:
        content = {name: run.input.get(name) for name in ("messages", "options")}
        return format_html("<pre>{}</pre>", json.dumps(content, indent=2, ensure_ascii=False))

    @admin.display(description="Page")
    def page(self, run: AgentRun) -> str:
        return format_html('<a href="{0}">{0}</a>', reverse("runs:view", args=[run.pk]))
