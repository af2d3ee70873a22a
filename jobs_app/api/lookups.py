"""Lookups that the API views of jobs share."""

from __future__ import annotations

from rest_framework.request import Request

from agentcms.errors import NotFound
from agentcms.ids import parse_uuid
from jobs_app.models import Job


def get_job(request: Request, job_id: str) -> Job:
    """Return a job of the caller. Raise NotFound."""
    job_uuid = parse_uuid(job_id)
    job = Job.objects.for_user(request.user).defer("cursor").filter(pk=job_uuid).first() if job_uuid else None
    if job is None:
        raise NotFound(f"Job with id {job_id} not found")
    return job
