"""The API view of jobs."""

from __future__ import annotations

from django.http import HttpResponse
from rest_framework.request import Request

from access_app.permissions import can_have_role
from access_app.role import Role, RoleRequired
from agentcms.api.pagination import page_payload
from agentcms.api.query_params import QueryParams
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.errors import Conflict
from jobs_app.api.lookups import get_job
from jobs_app.api.representation import job_response, listed_job_payload
from jobs_app.limits import reject_needed_job
from jobs_app.models import Job

JOBS_PER_PAGE = 50
RUNNING_MESSAGE = "A worker is running this job. Delete it when it has ended."


class JobsView(JSONView):
    """The jobs that the caller requested, newest first, without their results."""

    def get(self, request: Request) -> HttpResponse:
        with QueryParams(request) as query:
            paging, kind = query.paging(JOBS_PER_PAGE), query.text("kind")
            unknown = [name._asdict() for name in query.check_unknown_names()]
        jobs = Job.objects.for_user(request.user).filter(requested_by=request.user.pk)
        if kind is not None:
            jobs = jobs.filter(kind=kind)
        page = jobs.without_large_columns().select_related("file")[paging.start : paging.stop]
        rows = [listed_job_payload(job) for job in page]
        payload = page_payload("jobs", rows, jobs.count(), paging.page, paging.per_page)
        return json_response({**payload, "warnings": unknown} if unknown else payload)


class JobView(JSONView):
    """The state, progress and result of a job of the caller."""

    def get(self, request: Request, job_id: str) -> HttpResponse:
        return job_response(get_job(request, job_id))

    def delete(self, request: Request, job_id: str) -> HttpResponse:
        """Delete the job with its file and report."""
        job = get_job(request, job_id)
        # A key for reading alone may delete what it has started itself: exports.
        if not can_have_role(request.user, Role.EDITOR) and job.parameters.get("role") != Role.VIEWER:
            raise RoleRequired(Role.EDITOR, None)
        reject_needed_job(job)
        if not job.discard():
            raise Conflict(RUNNING_MESSAGE, "job_running", {"Retry-After": "5"})
        return json_response({"success": True, "message": f"Job {job_id} deleted"})
