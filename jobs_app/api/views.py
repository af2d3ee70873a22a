"""API views of jobs."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from rest_framework.request import Request

from agentcms.api.renderers import encode_json
from agentcms.api.views import JSONView
from agentcms.errors import NotFound
from agentcms.ids import parse_uuid
from jobs_app.models import Job


class JobView(JSONView):
    """The progress and result of a job that the user requested."""

    def get(self, request: Request, job_id: str) -> HttpResponse:
        return job_response(get_job(request, job_id))


def get_job(request: Request, job_id: str) -> Job:
    """Return a job that the user may see. Raises NotFound."""
    pk: Any = parse_uuid(job_id)  # no job has the id None
    job = Job.objects.for_user(request.user).filter(pk=pk).first()
    if job is None:
        raise NotFound(f"Job with id {job_id} not found")
    return job


def job_payload(job: Job) -> dict[str, Any]:
    """Return a job as the API shows it."""
    return {
        "id": job.pk,
        "kind": job.kind,
        "state": job.state,
        "done": job.done,
        "total": job.total,
        "result": job.result,
        "error": job.error or None,
        "createdAt": job.created_at,
        "startedAt": job.started_at,
        "finishedAt": job.finished_at,
    }


def job_response(job: Job, status: int = 200) -> HttpResponse:
    """Return a response with a job."""
    return HttpResponse(encode_json(job_payload(job)), "application/json", status)
