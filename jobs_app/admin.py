"""Jobs for staff: to read, and to send again."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html

from jobs_app.models import Job


@admin.register(Job)
class JobAdmin(admin.ModelAdmin):
    """Who asked for what, how far it is, and what came of it."""

    list_display = ("kind", "state", "progress", "requested_by", "created_at", "finished_at", "late")
    list_filter = ("state", "kind")
    list_select_related = ("requested_by",)
    fields = (
        "kind",
        "state",
        "progress",
        "requested_by",
        "parameters",
        "outcome",
        "error",
        "attempts",
        "created_at",
        "started_at",
        "finished_at",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        return Job.objects.for_user(request.user)

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

    @admin.display(description="Progress")
    def progress(self, job: Job) -> str:
        return f"{job.done} of {job.total}" if job.total else str(job.done)

    @admin.display(description="Result")
    def outcome(self, job: Job) -> str:
        return format_html("<pre>{}</pre>", json.dumps(job.result, indent=2, ensure_ascii=False))

    @admin.display(boolean=True)
    def late(self, job: Job) -> bool:
        return job.is_late
