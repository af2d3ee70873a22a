"""The pages of exports and imports. Each runs as a job with a progress page."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.core.files.uploadedfile import UploadedFile
from django.core.paginator import Paginator
from django.db import transaction
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.http import urlencode
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import trigger_client_event

from access_app.permissions import has_role_everywhere, max_role, owner_ids_for
from access_app.role import Role
from agentcms.web.uploads import accepts_upload
from agents_app.editing.bulk import MAX_AGENTS
from agents_app.views.access import visible_agents
from jobs_app.models import Job, JobQuerySet
from jobs_app.runner import enqueue
from versions_app.exchange.jobs import EXPORT, IMPORT, exchange_folder
from versions_app.exchange.report import Report, report_lines
from versions_app.forms.exchange import UploadForm

RECORDS_PER_PAGE = 100
MAX_RECENT_JOBS = 20


def user_jobs(request: HttpRequest) -> JobQuerySet:
    return Job.objects.filter(requested_by=request.user.pk, kind__in=(EXPORT, IMPORT))


def get_job(request: HttpRequest, job_id: UUID) -> Job:
    """Return a job of the user. Raises Http404 for jobs of others."""
    return get_object_or_404(user_jobs(request), pk=job_id)


def can_import(request: HttpRequest) -> bool:
    return has_role_everywhere(request.user, Role.PUBLISHER) or owner_ids_for(request.user, Role.PUBLISHER).exists()


@require_safe
@login_required
def job_list(request: HttpRequest) -> HttpResponse:
    """Show the export and import forms, and the user's recent jobs."""
    return render_job_list(request, UploadForm())


def render_job_list(request: HttpRequest, form: UploadForm, status: int = 200) -> HttpResponse:
    context = {
        "nav": "agents",
        "form": form,
        "may_import": can_import(request),
        "agents": visible_agents(request).filter(active_version__isnull=False).count(),
        "reports": [Report(job) for job in user_jobs(request)[:MAX_RECENT_JOBS]],
    }
    return render(request, "exchange/list.html", context, status=status)


# --- Export


@require_POST
@login_required
def export(request: HttpRequest) -> HttpResponse:
    """Start an export of the selected agents, or of all visible ones if none are named."""
    parameters: dict[str, Any] = {"role": max_role(request.user)}
    if agent_ids := request.POST.getlist("agent"):
        parameters["agents"] = [agent_id.replace("\0", "") for agent_id in agent_ids[:MAX_AGENTS]]
    elif "selected" in request.POST:
        return redirect("agents:list")

    with transaction.atomic():
        job = enqueue(EXPORT, parameters, requested_by=request.user)

    return redirect("exchange:job", job.pk)


@require_safe
@login_required
def download_export(request: HttpRequest, job_id: UUID) -> HttpResponseBase:
    """Download the file of an export."""
    job = get_job(request, job_id)
    report = Report(job)
    if not (report.is_export and report.has_file):
        raise Http404
    name = f"agents-{job.created_at:%Y-%m-%d}.jsonl"
    file = (exchange_folder() / f"{job.pk}.jsonl").open("rb")
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

    job = start_check(request, form.cleaned_data["file"])

    return redirect("exchange:job", job.pk)


def start_check(request: HttpRequest, file: UploadedFile) -> Job:
    """Start the dry run of a file and delete earlier files that were never imported."""
    for old in user_jobs(request).filter(kind=IMPORT, state__in=(Job.State.DONE, Job.State.FAILED)):
        (exchange_folder() / f"{old.pk}.upload").unlink(missing_ok=True)
    parameters = {"name": file.name, "dryRun": True, "keep": True, "role": max_role(request.user)}
    with transaction.atomic():
        job = enqueue(IMPORT, parameters, requested_by=request.user)
        with (exchange_folder() / f"{job.pk}.upload").open("wb") as stored:
            for chunk in file.chunks():
                stored.write(chunk)
    return job


@require_POST
@login_required
def confirm(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """Start the import of a checked file. Each file is imported at most once."""
    checked = get_job(request, job_id)
    report = Report(checked)
    if not (checked.kind == IMPORT and report.is_dry and report.is_done):
        raise Http404
    publish = request.POST.get("publish") == "yes"
    parameters = {"name": report.file_name, "publish": publish, "role": max_role(request.user)}
    try:
        with transaction.atomic():
            job = enqueue(IMPORT, parameters, requested_by=request.user)
            (exchange_folder() / f"{checked.pk}.upload").rename(exchange_folder() / f"{job.pk}.upload")
    except FileNotFoundError:
        return render_job(request, checked, 409)
    return redirect("exchange:job", job.pk)


# --- Job pages


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


def job_context(request: HttpRequest, job: Job) -> dict[str, Any]:
    """Return the template context of the page of a job."""
    report, show = Report(job), request.GET.get("show", "")
    page = Paginator(report.with_action(show), RECORDS_PER_PAGE).get_page(request.GET.get("page"))
    return {
        "nav": "agents",
        "report": report,
        "job": job,
        "show": show,
        "query": urlencode({"show": show}) if show else "",
        "page": page,
        "lines": report_lines(report, [*page], visible_agents(request)),
    }
