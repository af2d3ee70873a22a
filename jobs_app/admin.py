"""The admin of jobs: staff can view and retry them, and superusers start some."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path
from django.utils.decorators import method_decorator
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from access_app.admin_base.staff_access import ReadOnlyAdmin
from access_app.caller import Caller
from agentcms.errors import ApiError
from agentcms.wire.json_types import JSONObject
from jobs_app import runner
from jobs_app.kinds import kind_title, kind_titles
from jobs_app.limits import enqueue_for_user
from jobs_app.models import Job, ReportRow
from jobs_app.runner import OfferedJob

MAX_REPORT_ROWS = 200


class LateFilter(admin.SimpleListFilter):
    """A filter for overdue jobs and jobs whose worker died."""

    title = "schedule"
    parameter_name = "late"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin[Job]) -> Iterable[tuple[str, str]]:
        return [("yes", "Late")]

    def queryset(self, request: HttpRequest, queryset: Any) -> QuerySet[Job]:
        jobs: QuerySet[Job] = queryset.late() if self.value() == "yes" else queryset
        return jobs


class KindFilter(admin.SimpleListFilter):
    """A filter by kind, with the titles of the kinds."""

    title = "kind"
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin[Job]) -> Iterable[tuple[str, str]]:
        return kind_titles()

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job]:
        return queryset.filter(kind=self.value()) if self.value() else queryset


@admin.register(Job)
class JobAdmin(ReadOnlyAdmin):
    """The page of jobs."""

    change_list_template = "admin/jobs_app/job/change_list.html"
    list_display = ("kind_title", "state", "progress", "requested_by", "created_at", "finished_at", "on_schedule")
    list_filter = ("state", LateFilter, KindFilter, "created_at")
    list_select_related = ("requested_by",)
    actions = ("retry", "stop")
    fields = (
        "kind_title",
        "state",
        "progress",
        "requested_by",
        "inputs",
        "outcome",
        "report",
        "error",
        "attempts",
        "created_at",
        "started_at",
        "finished_at",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        return Job.objects.for_user(request.user).without_large_columns()

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Job | None:
        """Return a job with the columns that the list leaves out."""
        job = super().get_object(request, object_id, from_field)
        if job is not None:
            # At once: each deferred column would be a query of its own. The page does not show the cursor.
            job.refresh_from_db(fields=[name for name in Job.LARGE_COLUMNS if name != "cursor"])
        return job

    def get_urls(self) -> list[URLPattern]:
        start = self.admin_site.admin_view(self.start)
        return [path("start/<slug:name>/", start, name="jobs_app_job_start"), *super().get_urls()]

    @method_decorator(require_POST)  # a link must not start a job
    def start(self, request: HttpRequest, name: str) -> HttpResponse:
        """Start one of the jobs that superusers may start."""
        if not request.user.is_superuser:
            raise PermissionDenied
        if (offered_job := runner.offered_jobs.get(name)) is None:
            raise Http404
        try:
            job = start_offered_job(offered_job, request.user)
        except ApiError as error:  # too many jobs or files
            messages.error(request, error.error)
            return redirect("admin:jobs_app_job_changelist")
        messages.success(request, f"{offered_job.title}: started. This page shows the progress.")
        return redirect("admin:jobs_app_job_change", job.pk)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        offered_jobs = runner.offered_jobs if request.user.is_superuser else {}
        return super().changelist_view(request, {**(extra_context or {}), "offered_jobs": offered_jobs})

    @admin.action(description="Retry selected failed jobs")
    def retry(self, request: HttpRequest, jobs: QuerySet[Job]) -> None:
        """Queue the failed ones of the selected jobs again."""
        # A job that runs or is done goes on as it is: a second attempt could do its work twice.
        failed = [job for job in jobs if job.state == Job.State.FAILED]
        for job in failed:
            job.requeue()  # beat sends it
        hint = "Only failed jobs can be retried."
        self.report_action(request, len(failed), len(jobs), "job", "queued again.", hint)

    @admin.action(description="Stop selected jobs")
    def stop(self, request: HttpRequest, jobs: QuerySet[Job]) -> None:
        """Fail the selected jobs that wait or run. Their handlers end at their next report of progress."""
        error = f"{request.user.get_username()} stopped the job."
        stopped = sum(runner.stop_job(job, error) for job in jobs)
        self.report_action(request, stopped, len(jobs), "job", "stopped.", "Others have ended.")

    @admin.display(description="Kind", ordering="kind")
    def kind_title(self, job: Job) -> str:
        return kind_title(job.kind)

    @admin.display(description="Progress")
    def progress(self, job: Job) -> str:
        if not job.total:
            return str(job.done)
        bar = '<progress value="{}" max="{}"></progress> {} of {}'
        return format_html(bar, min(job.done, job.total), job.total, job.done, job.total)

    @admin.display(description="Parameters")
    def inputs(self, job: Job) -> str:
        return render_job_result(job.parameters) if job.parameters else "–"

    @admin.display(description="Result")
    def outcome(self, job: Job) -> str:
        return render_job_result(job.result) if job.result is not None else "–"

    @admin.display(description="Report")
    def report(self, job: Job) -> str:
        """The first rows of the report, and a link to all in the API."""
        # One more than is displayed shows that there are more.
        rows = list(job.report_rows.order_by("number")[: MAX_REPORT_ROWS + 1])
        if not rows:
            return "–"
        records = [
            {"line": row.number, "result": row.action, **readable_content(row)} for row in rows[:MAX_REPORT_ROWS]
        ]
        link = '<p><a href="/api/jobs/{}/records">All records (JSON)</a></p>'
        return render_table(records) + (format_html(link, job.pk) if len(rows) > MAX_REPORT_ROWS else "")

    @admin.display(boolean=True, description="On schedule")
    def on_schedule(self, job: Job) -> bool:
        return not job.is_late


def start_offered_job(offered_job: OfferedJob, user: Caller) -> Job:
    """Start a job for a superuser. Raise TooManyJobs and FileQuotaExceeded."""
    if offered_job.start is not None:
        return offered_job.start(user)
    return enqueue_for_user(offered_job.kind, offered_job.parameters, user)


def readable_content(row: ReportRow) -> dict[str, str]:
    """Return the texts of a report row."""
    warnings = " ".join(warning["message"] for warning in row.content.get("warnings", ()))
    return {"id": row.content.get("id", ""), "notes": row.content.get("reason", "") or warnings}


def render_job_result(result: object) -> SafeString:
    """Return a result as HTML: an object as a list, anything else as JSON."""
    if not isinstance(result, dict):
        return render_json(result)
    items = ((spaced_words(name), render_value(value)) for name, value in result.items())
    return format_html('<dl class="facts">{}</dl>', format_html_join("", "<dt>{}</dt><dd>{}</dd>", items))


def render_value(value: object) -> SafeString:
    """Return a value of a result as HTML: records as a table, a file as a link."""
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        return render_table(value)
    if isinstance(value, dict | list) and value:
        return render_json(value)
    # Results name a file or a report by such a URL.
    if isinstance(value, str) and value.startswith("/api/jobs/"):
        return format_html('<p><a href="{}">Download</a></p>', value)
    return format_html("<p>{}</p>", "none" if value in ([], {}, None) else value)


def render_table(records: list[JSONObject]) -> SafeString:
    """Return records as a table with at most `MAX_REPORT_ROWS` rows."""
    names = list(records[0])
    head = format_html_join("", "<th>{}</th>", ((spaced_words(name),) for name in names))
    cells = (
        (format_html_join("", "<td>{}</td>", ((record.get(name, ""),) for name in names)),)
        for record in records[:MAX_REPORT_ROWS]
    )
    body = format_html_join("", "<tr>{}</tr>", cells)
    hidden_count = len(records) - MAX_REPORT_ROWS
    note = format_html("<p>{} more are not shown.</p>", hidden_count) if hidden_count > 0 else ""
    return format_html("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>{}", head, body, note)


def render_json(value: object) -> SafeString:
    return format_html("<pre>{}</pre>", json.dumps(value, indent=2, ensure_ascii=False))


def spaced_words(name: str) -> str:
    """Return a wire name as words: "Version number" for `versionNumber`."""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).capitalize()
