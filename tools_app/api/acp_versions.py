"""API views of the versions of ACP agents. Only superusers see them; to everybody else they do not exist."""

from __future__ import annotations

from django.db import transaction
from django.http import HttpResponse
from rest_framework.request import Request

from access_app.permissions import SHARED_OWNER
from access_app.role import Role
from agentcms.api.parsers import json_object_body
from agentcms.api.query_params import QueryParams
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agents_app.api.idempotency import idempotent_while, takes_idempotency_key
from agents_app.api.required_role import note_required_role
from tools_app.acp.versions import get_acp_version, restore_acp_version
from tools_app.api.acp_lookups import get_acp_agent, lock_acp_agent, require_superuser
from tools_app.api.representation import version_body
from tools_app.api.responses import acp_agent_response, refusing_invalid_versions, versions_response


class AcpAgentVersionsView(JSONView):
    """The versions of an ACP agent, newest first."""

    def get(self, request: Request, acp_id: str) -> HttpResponse:
        row = get_acp_agent(request, acp_id)
        with QueryParams(request) as query:
            paging = query.paging(20)
            unknown = query.check_unknown_names()
        return versions_response(row.versions.all(), paging, unknown)


class AcpAgentVersionView(JSONView):
    """One version of an ACP agent, which its number names."""

    def get(self, request: Request, acp_id: str, number: str) -> HttpResponse:
        return json_response(version_body(get_acp_version(get_acp_agent(request, acp_id), number)))


def find_restored_acp_agent(request: Request, acp_id: str, number: str) -> None:
    """Raise NotFound if the caller may not see the ACP agent."""
    get_acp_agent(request, acp_id)


class AcpAgentRestoreView(JSONView):
    """A new version with the configuration of an earlier one."""

    @takes_idempotency_key
    def post(self, request: Request, acp_id: str, number: str) -> HttpResponse:
        require_superuser(request)  # before the body is read
        return self.restore(request, acp_id=acp_id, number=number)

    @idempotent_while(find_restored_acp_agent)
    def restore(self, request: Request, acp_id: str, number: str) -> HttpResponse:
        json_object_body(request)
        note_required_role(Role.MANAGER, SHARED_OWNER)
        with transaction.atomic():
            row = lock_acp_agent(request, acp_id)
            version = get_acp_version(row, number)
            with refusing_invalid_versions():
                restore_acp_version(row, version)
        return acp_agent_response(row)
