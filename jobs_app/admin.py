"""Jobs for staff: to read, to start and to send again."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path
from django.utils.decorators import method_decorator
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from access_app.admin_access import ReadOnlyAdmin
from jobs_app import runner
from jobs_app.models import Job

MAX_ROWS = 200


class LateFilter(admin.SimpleListFilter):
    """Jobs that wait too long, or whose worker has died."""

    title = "late"
    parameter_name = "late"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        return [("yes", "Late")]

    def queryset(self, request: HttpRequest, queryset: Any) -> QuerySet[Job]:
        jobs: QuerySet[Job] = queryset.late() if self.value() == "yes" else queryset
        return jobs


@admin.register(Job)
class JobAdmin(ReadOnlyAdmin):
    """Who asked for what, how far it is, and what came of it."""

    change_list_template = "admin/jobs_app/job/change_list.html"
    list_display = ("kind", "state", "progress", "requested_by", "created_at", "finished_at", "in_time")
    list_filter = ("state", LateFilter, "kind", "created_at")
    list_select_related = ("requested_by",)
    actions = ("again",)
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

    def get_urls(self) -> list[Any]:
        start = self.admin_site.admin_view(method_decorator(require_POST)(JobAdmin.start).__get__(self))
        return [path("start/<slug:name>/", start, name="jobs_app_job_start"), *super().get_urls()]

    def start(self, request: HttpRequest, name: str) -> HttpResponse:
        """Start one of the jobs that are on offer."""
        if not request.user.is_superuser:
            raise PermissionDenied
        if (offer := runner.staff_jobs.get(name)) is None:
            raise Http404
        job = runner.enqueue(offer.kind, offer.parameters, requested_by=request.user)
        messages.success(request, f"{offer.title}: started. This page shows how far it is.")
        return redirect("admin:jobs_app_job_change", job.pk)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        offers = runner.staff_jobs if request.user.is_superuser else {}
        return super().changelist_view(request, {**(extra_context or {}), "offers": offers})

    @admin.action(description="Do the selected failed jobs again")
    def again(self, request: HttpRequest, jobs: QuerySet[Job]) -> None:
        failed = [job for job in jobs if job.state == Job.State.FAILED]
        for job in failed:
            job.requeue()
        level = messages.SUCCESS if failed else messages.WARNING
        self.message_user(request, f"Queued {len(failed)} of {len(jobs)} jobs again.", level)

    @admin.display(description="Progress")
    def progress(self, job: Job) -> str:
        if not job.total:
            return str(job.done)
        bar = '<progress value="{}" max="{}"></progress> {} of {}'
        return format_html(bar, min(job.done, job.total), job.total, job.done, job.total)

    @admin.display(description="Result")
    def outcome(self, job: Job) -> str:
        return render_result(job.result) if job.result is not None else "–"

    @admin.display(boolean=True, description="In time")
    def in_time(self, job: Job) -> bool:
        return not job.is_late


def render_result(result: Any) -> SafeString:
    """A result as people read it: figures as a list, records as a table, anything else as JSON."""
    if not isinstance(result, dict):
        return render_json(result)
    facts = ((spaced_words(name), render_value(value)) for name, value in result.items())
    return format_html('<dl class="facts">{}</dl>', format_html_join("", "<dt>{}</dt><dd>{}</dd>", facts))


def render_value(value: Any) -> SafeString:
    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        return render_table(value)
    if isinstance(value, dict | list) and value:
        return render_json(value)
    if isinstance(value, str) and value.startswith("/api/jobs/"):
        return format_html('<p><a href="{}">Download</a></p>', value)
    return format_html("<p>{}</p>", "none" if value in ([], {}, None) else value)


def render_table(records: list[dict[str, Any]]) -> SafeString:
    names = list(records[0])
    head = format_html_join("", "<th>{}</th>", ((spaced_words(name),) for name in names))
    cells = (
        (format_html_join("", "<td>{}</td>", ((record.get(name, ""),) for name in names)),)
        for record in records[:MAX_ROWS]
    )
    more = len(records) - MAX_ROWS
    body = format_html_join("", "<tr>{}</tr>", cells)
    rest = format_html("<p>{} more are not shown.</p>", more) if more > 0 else ""
    return format_html("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>{}", head, body, rest)


def render_json(value: Any) -> SafeString:
    return format_html("<pre>{}</pre>", json.dumps(value, indent=2, ensure_ascii=False))


def spaced_words(name: str) -> str:
    """`versionNumber` as "Version number"."""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).capitalize()
