"""Read-only admin of background tasks."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.admin.models import CHANGE, LogEntry
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html

from access_app.admin_base.lists import TeamColumnMixin
from access_app.admin_base.staff_access import ReadOnlyAdmin
from runs_app.admin.json_html import json_html
from runs_app.background.endings import cancel_task
from runs_app.models import BackgroundTask


@admin.register(BackgroundTask)
class BackgroundTaskAdmin(TeamColumnMixin, ReadOnlyAdmin):
    """Tool calls that run in the background. Staff can cancel them."""

    list_display = ("tool", "agent_key", "team", "status", "retries", "attempts", "created_at", "finished_at")
    list_filter = ("status", "is_awaited", "is_at_most_once", "created_at")
    search_fields = ("tool", "agent_key", "owner_id", "call_id", "error")
    actions = ("cancel",)
    fields = (
        "page",
        "tool",
        "agent_key",
        "team",
        "status",
        "arguments_json",
        "result_json",
        "error",
        "progress_json",
        "is_awaited",
        "is_at_most_once",
        "is_ordered",
        "number",
        "depth",
        "timeout_ms",
        "max_retries",
        "retries",
        "attempts",
        "created_at",
        "started_at",
        "suspended_at",
        "finished_at",
        "is_delivery_due",
        "run_key",
        "call_id",
        "call_key",
        "traceparent",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[BackgroundTask]:
        tasks = BackgroundTask.objects.for_user(request.user).defer("arguments", "result")  # the list shows neither
        return tasks.order_by("-created_at", "-id")

    @admin.action(description="Cancel the selected tasks")
    def cancel(self, request: HttpRequest, queryset: QuerySet[BackgroundTask]) -> None:
        tasks = [*queryset]
        cancelled = [task for task in tasks if cancel_task(task)]
        if cancelled:
            LogEntry.objects.log_actions(request.user.pk or 0, cancelled, CHANGE, "Cancelled.")
        self.report_action(
            request, len(cancelled), len(tasks), "task", "cancelled.", "A finished task stays as it is."
        )

    @admin.display(description="Page")
    def page(self, task: BackgroundTask) -> str:
        return format_html('<a href="{0}">{0}</a>', reverse("runs:view", args=[task.run_id]))

    @admin.display(description="Run ID")
    def run_key(self, task: BackgroundTask) -> str:
        return str(task.run_id)

    @admin.display(description="Arguments")
    def arguments_json(self, task: BackgroundTask) -> str:
        return json_html(task.arguments)

    @admin.display(description="Result")
    def result_json(self, task: BackgroundTask) -> str:
        return json_html(task.result)

    @admin.display(description="Progress")
    def progress_json(self, task: BackgroundTask) -> str:
        return json_html(task.progress)
