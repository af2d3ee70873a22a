"""The pages of exports and imports. Each runs as a job with a progress page."""

from __future__ import annotations

from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.files.uploadedfile import UploadedFile
from django.core.paginator import Paginator
from django.db import transaction
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django_htmx.http import trigger_client_event

from access_app.permissions import has_role_somewhere
from access_app.role import Role
from agentcms.errors import ApiError
from agentcms.web.dialogs import redirect_page, render_dialog
from agentcms.web.template_context import TemplateContext
from agentcms.web.uploads import accepts_upload
from agents_app.editing.bulk import MAX_SELECTED_AGENTS, NOTHING_SELECTED_MESSAGE
from agents_app.views.access import GET_POST, visible_agents
from jobs_app.download_rights import require_owners_of_file
from jobs_app.limits import require_free_job, used_bytes
from jobs_app.models import Job, JobQuerySet
from versions_app.exchange.export_job import EXPORT, start_agent_export
from versions_app.exchange.import_job import (
    IMPORT,
    StoredUpload,
    delete_checked_files,
    start_checked_import,
    start_import,
)
from versions_app.exchange.report import JobReport, list_reports, report_lines
from versions_app.forms.exchange import UploadForm

RECORDS_PER_PAGE = 100
MAX_RECENT_JOBS = 20
MAX_AGENT_ID_LENGTH = 128  # that of the column
RUNNING_MESSAGE = "A worker runs this job. Delete it after it has finished."


def user_jobs(request: HttpRequest) -> JobQuerySet:
    return Job.objects.filter(requested_by=request.user.pk, kind__in=(EXPORT, IMPORT))


def get_job(request: HttpRequest, job_id: UUID) -> Job:
    """Return a job of the user. Raise Http404 for jobs of others."""
    return get_object_or_404(user_jobs(request).defer("cursor"), pk=job_id)


def can_import(request: HttpRequest) -> bool:
    return has_role_somewhere(request.user, Role.PUBLISHER)


@require_safe
@login_required
def job_list(request: HttpRequest) -> HttpResponse:
    """Show the export and import forms, and the user's recent jobs."""
    return render_job_list(request, UploadForm())


def render_job_list(request: HttpRequest, form: UploadForm, status: int = 200, problem: str = "") -> HttpResponse:
    context = {
        "problem": problem,
        "used_bytes": used_bytes(request.user),
        "max_bytes": settings.JOB_FILES_PER_USER,
        "nav": "agents",
        "form": form,
        "may_import": can_import(request),
        "agents": visible_agents(request).filter(active_version__isnull=False).count(),
        "reports": list_reports(user_jobs(request), MAX_RECENT_JOBS),
    }
    return render(request, "exchange/list.html", context, status=status)


def refuse_job(request: HttpRequest, error: ApiError) -> HttpResponse:
    """Render the list of jobs with the reason why no further one can start."""
    response = render_job_list(request, UploadForm(), error.status, error.error)
    for name, value in error.headers.items():
        response.headers[name] = value
    return response


# --- Export


@require_POST
@login_required
def export(request: HttpRequest) -> HttpResponse:
    """Start an export of the selected agents, or of all visible ones if none are named."""
    agent_ids: list[str] | None = None
    if selected := request.POST.getlist("agent"):
        # A longer ID is that of no agent.
        short = [agent_id for agent_id in selected[:MAX_SELECTED_AGENTS] if len(agent_id) <= MAX_AGENT_ID_LENGTH]
        # PostgreSQL refuses a NUL in a text.
        agent_ids = [agent_id.replace("\0", "") for agent_id in short]
    elif "selected" in request.POST:
        messages.error(request, NOTHING_SELECTED_MESSAGE)
        return redirect("agents:list")

    try:
        job = start_agent_export(request.user, agent_ids)
    except ApiError as error:
        return refuse_job(request, error)

    if job.is_finished:
        messages.info(request, "Nothing has changed since this export.")
    return redirect("exchange:job", job.pk)


@require_safe
@login_required
def download_export(request: HttpRequest, job_id: UUID) -> HttpResponseBase:
    """Download the file of an export."""
    job = get_job(request, job_id)
    report = JobReport(job)
    if not (report.is_export and report.file):
        raise Http404
    require_owners_of_file(request.user, job)
    name = f"agents-{job.created_at:%Y-%m-%d}.jsonl"
    try:
        file = report.file.open()
    except FileNotFoundError:  # the clean-up deleted it since the query
        raise Http404 from None
    return FileResponse(file, as_attachment=True, filename=name, content_type="application/x-ndjson")


# --- Import


@require_POST
@login_required
@accepts_upload
def upload(request: HttpRequest) -> HttpResponse:
    """Store a file and start a dry run, which reports what an import would do."""
    form = UploadForm(request.POST, request.FILES, was_too_large=getattr(request, "was_too_large", False))
    if not can_import(request):
        return render_job_list(request, form, 403)
    if not form.is_valid():
        return render_job_list(request, form, 422)

    try:
        job = start_check(request, form.cleaned_data["file"])
    except ApiError as error:
        return refuse_job(request, error)

    return redirect("exchange:job", job.pk)


def start_check(request: HttpRequest, file: UploadedFile) -> Job:
    """Start the dry run of a file and delete earlier files that were never imported."""
    require_free_job(request.user)
    with StoredUpload(file, file.size or 0) as upload:
        # Together: a file that cannot be checked now must not cost the user the one that was checked before.
        with transaction.atomic():
            delete_checked_files(request.user)
            job = start_import(request.user, {"name": file.name, "dryRun": True, "keep": True}, upload)
        upload.is_taken = True
    return job


@require_POST
@login_required
def confirm(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """Start the import of a checked file. Each file is imported at most once."""
    checked = get_job(request, job_id)
    report = JobReport(checked)
    if not (checked.kind == IMPORT and report.is_dry and report.is_done):
        raise Http404
    publish = request.POST.get("publish") == "yes"
    options = {"name": report.file_name, "publish": publish}
    try:
        job = start_checked_import(request.user, checked, options)
    except ApiError as error:
        return refuse_job(request, error)
    return redirect("exchange:job", job.pk) if job else render_job(request, checked, 409)


# --- Job pages


@require_http_methods(GET_POST)
@login_required
def delete_job(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """Delete a job with its file and report after a question, unless a worker runs it."""
    job = get_job(request, job_id)
    report, is_refused = JobReport(job), False
    if request.method == "POST":
        if job.discard():
            messages.success(request, f"{report.title}: deleted.")
            return redirect_page(request, reverse("exchange:list"))
        is_refused = True
    context = {
        "title": f"Delete “{report.title}”?",
        "body": "exchange/_delete.html",
        "report": report,
        "why_not": RUNNING_MESSAGE if is_refused or job.state == Job.State.RUNNING else "",
        "buttons": [{"label": "Delete the job", "kind": "danger"}],
        "back": reverse("exchange:list"),
    }
    return render_dialog(request, context, 409 if is_refused else 200)


@require_safe
@login_required
def view_job(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """Show the progress or the result of a job."""
    return render_job(request, get_job(request, job_id))


@require_safe
@login_required
def progress(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """Render the progress as a fragment, polled until the job is over."""
    context = job_context(request, get_job(request, job_id))
    response = render(request, "exchange/_job.html", context)
    if context["report"].is_over:
        trigger_client_event(response, "job-finished", {"target": "body", "message": context["report"].summary})
    return response


def render_job(request: HttpRequest, job: Job, status: int = 200) -> HttpResponse:
    return render(request, "exchange/job.html", job_context(request, job), status=status)


def job_context(request: HttpRequest, job: Job) -> TemplateContext:
    """Return the template context of the page of a job."""
    report, show = JobReport(job), request.GET.get("show", "")
    page = Paginator(report.rows(show), RECORDS_PER_PAGE).get_page(request.GET.get("page"))
    return {
        "nav": "agents",
        "report": report,
        "job": job,
        "show": show,
        "query": urlencode({"show": show}) if show else "",
        "page": page,
        "lines": report_lines(report, [*page], visible_agents(request)),
    }
