"""The API view of jobs."""

from __future__ import annotations

from django.http import HttpResponse
from rest_framework.request import Request

from agentcms.api.views import JSONView
from jobs_app.api.lookups import get_job
from jobs_app.api.representation import job_response


class JobView(JSONView):
    """The state, progress and result of a job of the caller."""

    def get(self, request: Request, job_id: str) -> HttpResponse:
        return job_response(get_job(request, job_id))
