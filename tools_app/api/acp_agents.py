"""API views of ACP agents. Only superusers see them; to everybody else they do not exist."""

from __future__ import annotations

from django.db import transaction
from django.http import HttpResponse
from rest_framework.request import Request

from access_app.permissions import SHARED_OWNER
from access_app.role import Role
from agentcms.api.etags import is_not_modified
from agentcms.api.pagination import page_payload
from agentcms.api.query_params import QueryParams
from agentcms.api.responses import json_response, json_text_response
from agentcms.api.views import JSONView
from agentcms.db.locks import reserve_new_key
from agents_app.api.idempotency import idempotent, takes_idempotency_key
from agents_app.api.required_role import note_required_role
from agents_app.api.responses import deletion_message
from agents_app.api.strict_requests import warning_payloads
from tools_app.acp.used_by import find_agents_using_acp_agent
from tools_app.api.acp_lookups import get_acp_agent, lock_acp_agent, require_superuser
from tools_app.api.acp_schemas import (
    ACP_AGENT_CHANGE,
    AcpAgentBody,
    change_acp_agent,
    read_acp_agent,
)
from tools_app.api.representation import acp_agent_body, record_etag
from tools_app.api.responses import acp_agent_response
from tools_app.models import AcpAgent


class AcpAgentsView(JSONView):
    """List of the ACP agents, and the creation of one."""

    def get(self, request: Request) -> HttpResponse:
        require_superuser(request)
        with QueryParams(request) as query:
            paging = query.paging(100)
            unknown = query.check_unknown_names()
        rows = AcpAgent.objects.all()
        page = [acp_agent_body(row) for row in rows[paging.start : paging.stop]]
        payload = page_payload("acpAgents", page, rows.count(), paging.page, paging.per_page)
        return json_response(payload | warning_payloads(unknown))

    @takes_idempotency_key
    def post(self, request: Request) -> HttpResponse:
        require_superuser(request)  # also of a repeated request
        return self.create(request)

    @idempotent
    def create(self, request: Request) -> HttpResponse:
        note_required_role(Role.MANAGER, SHARED_OWNER)
        fields, unknown = read_acp_agent(request, AcpAgentBody)
        row = AcpAgent(key=fields["id"])
        with transaction.atomic():
            reserve_new_key(AcpAgent, row.key)
            change_acp_agent(row, fields)
            row.save()
        return acp_agent_response(row, 201, unknown)


class AcpAgentView(JSONView):
    """An ACP agent: read, change and delete."""

    def get(self, request: Request, acp_id: str) -> HttpResponse:
        row = get_acp_agent(request, acp_id)
        if is_not_modified(request, record_etag(row)):
            return json_text_response("", 304, record_etag(row))
        return acp_agent_response(row)

    def patch(self, request: Request, acp_id: str) -> HttpResponse:
        with transaction.atomic():
            row = lock_acp_agent(request, acp_id)
            fields, unknown = read_acp_agent(request, ACP_AGENT_CHANGE, row)
            change_acp_agent(row, fields)
            row.save()
        return acp_agent_response(row, unknown=unknown)

    def delete(self, request: Request, acp_id: str) -> HttpResponse:
        with transaction.atomic():
            row = lock_acp_agent(request, acp_id)
            message = deletion_message(request.user, f"ACP agent {acp_id}", find_agents_using_acp_agent(row))
            row.delete()
        return json_response({"success": True, "message": message})
