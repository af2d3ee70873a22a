"""Pages that import a file of items: upload, preview with a mapping of columns, progress and faults by line."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_safe
from django_htmx.http import trigger_client_event

from access_app.role import Role
from agentcms.errors import ApiError
from agentcms.web.template_context import TemplateContext
from agentcms.web.uploads import accepts_upload
from agents_app.views.access import GET_POST
from evals_app.api.exchange.download import export_response
from evals_app.exchange.formats import FileFormat
from evals_app.exchange.import_job import IMPORT_ITEMS, UPLOAD_ITEMS, start_mapped_import, store_upload
from evals_app.exchange.preview import Preview, build_preview, parse_columns
from evals_app.forms.datasets import ItemFileForm
from evals_app.models import Dataset
from evals_app.views.lookups import earlier_version, get_page_dataset
from jobs_app.models import Job, JobFile
from versions_app.exchange.import_job import StoredUpload

FAULTS_PER_PAGE = 100
MAX_RECENT_IMPORTS = 5


@require_http_methods(GET_POST)
@login_required
@accepts_upload
def upload(request: HttpRequest, dataset_id: str) -> HttpResponse:
    """Ask for a file, and keep it until its columns are mapped."""
    dataset = get_page_dataset(request, dataset_id, Role.EDITOR)
    form = ItemFileForm(
        request.POST or None, request.FILES or None, was_too_large=getattr(request, "was_too_large", False)
    )
    if request.method == "POST":
        # Also without data: a file that is too large is not read, and is then missing from FILES.
        form.is_bound = True
        if form.is_valid():
            file = form.cleaned_data["file"]
            try:
                with StoredUpload(file, file.size or 0) as stored:
                    options = {"name": (file.name or "")[:255], "format": str(form.cleaned_data["format"])}
                    job = store_upload(request.user, dataset, options, stored)
                    stored.is_taken = True
                return redirect("evals:import", dataset.pk, job.pk)
            except ApiError as error:
                form.add_error("file", error.error)
    context = {"nav": "evals", "dataset": dataset, "form": form, "imports": recent_imports(request, dataset)}
    return render(request, "evals/upload.html", context, status=422 if form.errors else 200)


def recent_imports(request: HttpRequest, dataset: Dataset) -> list[Job]:
    jobs = Job.objects.filter(requested_by=request.user.pk, kind=IMPORT_ITEMS, parameters__dataset=dataset.pk)
    return list(jobs.defer("cursor")[:MAX_RECENT_IMPORTS])


@require_http_methods(GET_POST)
@login_required
def import_page(request: HttpRequest, dataset_id: str, job_id: UUID) -> HttpResponse:
    """Show the preview of a kept file, or the progress and the result of its import. A POST starts the import."""
    dataset = get_page_dataset(request, dataset_id, Role.EDITOR)
    job = get_import(request, dataset, job_id)
    preview = preview_of(job)
    problem, status = "", 200
    if request.method == "POST":
        columns = None
        if preview and preview.is_mapped:
            columns, problem = parse_columns(preview.header, request.POST.dict())
        if not problem:
            try:
                started = start_mapped_import(request.user, dataset, job, columns)
                # Without a job, the file was imported or deleted meanwhile, which its own page says.
                return redirect("evals:import", dataset.pk, (started or job).pk)
            except ApiError as error:
                problem = error.error
        status = 422
        preview = preview_of(job, columns)
    context = {**import_context(request, dataset, job), "preview": preview, "problem": problem}
    return render(request, "evals/import.html", context, status=status)


@require_safe
@login_required
def progress(request: HttpRequest, dataset_id: str, job_id: UUID) -> HttpResponse:
    """Render the progress as a fragment, which requests itself until the import is over."""
    dataset = get_page_dataset(request, dataset_id, Role.EDITOR)
    job = get_import(request, dataset, job_id)
    context = {**import_context(request, dataset, job), "preview": preview_of(job)}
    response = render(request, "evals/_import.html", context)
    if job.is_finished:
        kind = "fault" if context["is_import"] and not context["result"].get("stored") else ""
        trigger_client_event(response, "job-finished", {"target": "body", "message": summary_of(job), "kind": kind})
    return response


def get_import(request: HttpRequest, dataset: Dataset, job_id: UUID) -> Job:
    """Return an import of the user into a dataset. Raise Http404 for any other job."""
    jobs = Job.objects.filter(requested_by=request.user.pk, kind__in=(IMPORT_ITEMS, UPLOAD_ITEMS))
    return get_object_or_404(jobs.filter(parameters__dataset=dataset.pk), pk=job_id)


def preview_of(job: Job, chosen: dict[str, str | None] | None = None) -> Preview | None:
    """Return the preview of a file that can be imported, or None if it was imported or deleted."""
    file = JobFile.objects.filter(job=job).first() if job.is_finished else None
    if file is None:
        return None
    return build_preview(file, job.parameters["format"], chosen or job.parameters["columns"])


def import_context(request: HttpRequest, dataset: Dataset, job: Job) -> TemplateContext:
    faults = Paginator(job.report_rows.order_by("number"), FAULTS_PER_PAGE).get_page(request.GET.get("page"))
    is_import = job.kind == IMPORT_ITEMS
    result = (job.result or {}) if is_import else {}
    return {
        "nav": "evals",
        "dataset": dataset,
        "job": job,
        "is_import": is_import,
        "faults": faults,
        "summary": summary_of(job) if is_import else "",
        "result": result,
        "unlisted_count": max(0, result.get("refused", 0) - faults.paginator.count),
        "file_format": FileFormat(job.parameters["format"]).label,
    }


def summary_of(job: Job) -> str:
    """Return a sentence on the state or the result of an import."""
    if job.state == Job.State.FAILED:
        return f"The import failed. {job.error}"
    if not job.is_finished:
        return "Waiting for a worker." if job.state == Job.State.QUEUED else "Checking and storing the rows."
    result = job.result or {}
    if not result.get("stored"):
        count, rows = result.get("refused", 0), result.get("rows", 0)
        return f"Nothing was imported: {count:,} of {rows:,} rows {'has' if count == 1 else 'have'} errors."
    if result.get("version") is None:
        return "Nothing was imported: the dataset has these items already."
    return f"Version {result['version']}: {result['added']:,} items added, {result['changed']:,} changed."


@require_safe
@login_required
def export(request: HttpRequest, dataset_id: str) -> HttpResponseBase:
    """Download the items of a dataset at its current or an earlier version."""
    dataset = get_page_dataset(request, dataset_id)
    name, version = request.GET.get("format", ""), request.GET.get("version", "")
    file_format = FileFormat(name) if name in FileFormat.values else FileFormat.CSV
    number = earlier_version(dataset, version)
    return export_response(dataset, dataset.version if number is None else number, file_format)
