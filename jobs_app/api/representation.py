"""The representation of a job in the API."""

from __future__ import annotations

from django.http import HttpResponse

from agentcms.api.responses import json_response
from agentcms.wire.json_types import JSONObject
from jobs_app.models import Job, JobFile


def listed_job_payload(job: Job) -> JSONObject:
    """Return a job in a list, with the size of its file and report in bytes."""
    file: JobFile | None = getattr(job, "file", None)
    return {
        "id": job.pk,
        "kind": job.kind,
        "state": job.state,
        "done": job.done,
        "total": job.total,
        "fileBytes": file.size if file else 0,
        "reportBytes": job.report_size,
        "createdAt": job.created_at,
        "startedAt": job.started_at,
        "finishedAt": job.finished_at,
    }


def job_payload(job: Job) -> JSONObject:
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
    return json_response(job_payload(job), status)
