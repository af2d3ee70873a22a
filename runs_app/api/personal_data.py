"""API views that export or delete all data of a resource, as jobs."""

from __future__ import annotations

from typing import cast

from django.contrib.auth.models import User
from django.http import HttpResponse
from rest_framework.request import Request

from agentcms.api.views import JSONView
from agentcms.errors import NotFound
from agents_app.api.idempotency import idempotent_if
from jobs_app.api.representation import job_response
from memory_app.models import Resource
from memory_app.realms import MemoryCaller
from runs_app.privacy.jobs import personal_data_caller, start_forgetting, start_resource_export
from runs_app.runs_of_resources import calls_of


def check_rights_to_data(request: Request, resource_id: str) -> None:
    """Raise ApiError if the caller may not export or delete data, also of a resource that is deleted already."""
    personal_data_caller(request.user)


class ResourceExportView(JSONView):
    """Start of an export of all data of a resource."""

    @idempotent_if(check_rights_to_data)
    def post(self, request: Request, resource_id: str) -> HttpResponse:
        caller = find_caller(request, resource_id)
        return job_response(start_resource_export(request.user, caller.realm, resource_id), 202)


class ResourceForgetView(JSONView):
    """Start of the deletion of all data of a resource."""

    @idempotent_if(check_rights_to_data)
    def post(self, request: Request, resource_id: str) -> HttpResponse:
        caller = find_caller(request, resource_id)
        return job_response(start_forgetting(cast(User, request.user), caller.realm, resource_id), 202)


def find_caller(request: Request, resource_id: str) -> MemoryCaller:
    """Return the caller, in whose realm the resource is. Raise NotFound and Forbidden."""
    caller = personal_data_caller(request.user)
    is_own = resource_id == caller.default_resource  # runs without memory make no row for it
    if not is_own and not is_known(caller.realm, resource_id):
        raise NotFound(f"Resource with id {resource_id} not found")
    return caller


def is_known(realm: str, key: str) -> bool:
    """Return whether there is data of a resource. Approvals outlive the runs, the threads and the row of it."""
    return Resource.objects.filter(realm=realm, key=key).exists() or calls_of(realm, key).exists()
