"""API views of ACP agents. Only superusers see them; to everybody else they do not exist."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpResponse
from rest_framework.request import Request

from access_app.permissions import SHARED_OWNER, has_role_everywhere
from access_app.role import Role
from agentcms.api.etags import allows_change, is_not_modified, with_etag
from agentcms.api.pagination import page_payload
from agentcms.api.query_params import QueryParams
from agentcms.api.responses import json_response, json_text_response
from agentcms.api.views import JSONView
from agentcms.db.locks import reserve_new_key
from agentcms.errors import NotFound, PreconditionFailed
from agentcms.wire.timestamps import format_timestamp
from agentcms.wire.unknown_names import UnknownName
from agents_app.api.idempotency import idempotent
from agents_app.api.required_role import note_required_role
from agents_app.api.unknown_keys import warning_payloads
from tools_app.api.acp_schemas import (
    ACP_AGENT_CHANGE,
    AcpAgentBody,
    apply_acp_agent,
    read_acp_agent,
    reject_other_id,
)
from tools_app.api.representation import record_etag, version_body
from tools_app.models import AcpAgent
from tools_app.programs.environment import MASK


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
            apply_acp_agent(row, fields)
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
            fields, unknown = read_acp_agent(request, ACP_AGENT_CHANGE)
            reject_other_id(fields, row)
            apply_acp_agent(row, fields)
            row.save()
        return acp_agent_response(row, unknown=unknown)

    def delete(self, request: Request, acp_id: str) -> HttpResponse:
        with transaction.atomic():
            lock_acp_agent(request, acp_id).delete()
        return json_response({"success": True, "message": f"ACP agent {acp_id} deleted"})


class AcpAgentVersionsView(JSONView):
    """The versions of an ACP agent, newest first."""

    def get(self, request: Request, acp_id: str) -> HttpResponse:
        row = get_acp_agent(request, acp_id)
        with QueryParams(request) as query:
            paging = query.paging(20)
            unknown = query.check_unknown_names()
        versions = row.versions.all()
        page = [version_body(version) for version in versions[paging.start : paging.stop]]
        payload = page_payload("versions", page, versions.count(), paging.page, paging.per_page)
        return json_response(payload | warning_payloads(unknown))


def require_superuser(request: Request) -> None:
    """Raise NotFound unless the user is a superuser whose key may manage everything."""
    if not has_role_everywhere(request.user, Role.MANAGER):
        raise NotFound("There is nothing at this address.")


def get_acp_agent(request: Request, key: str) -> AcpAgent:
    """Return an ACP agent. Raise NotFound for all users but superusers."""
    return find_or_raise(request, AcpAgent.objects.all(), key)


def lock_acp_agent(request: Request, key: str) -> AcpAgent:
    """Lock an ACP agent for a change, inside a transaction.

    Raise NotFound for all users but superusers, and PreconditionFailed if `If-Match` names another state.
    """
    row = find_or_raise(request, AcpAgent.objects.select_for_update(), key)
    if not allows_change(request, record_etag(row)):
        message = f"The ACP agent '{row.title}' was changed at {format_timestamp(row.updated_at)}. Read it again."
        raise PreconditionFailed(message, record_etag(row))
    return row


def find_or_raise(request: Request, rows: QuerySet[AcpAgent], key: str) -> AcpAgent:
    require_superuser(request)
    row = rows.filter(key=key).first()
    if row is None:
        raise NotFound(f"ACP agent with id {key} not found")
    return row


def acp_agent_response(row: AcpAgent, status: int = 200, unknown: Sequence[UnknownName] = ()) -> HttpResponse:
    return with_etag(json_response(acp_agent_body(row) | warning_payloads(unknown), status), record_etag(row))


def acp_agent_body(row: AcpAgent) -> dict[str, object]:
    """Return an ACP agent without the values of its environment."""
    return {
        "id": row.key,
        "title": row.title,
        "description": row.description,
        "commandKey": row.command_key,
        "env": dict.fromkeys(row.environment_names, MASK),
        "authMethodId": row.auth_method_id or None,
        "persistSession": row.persists_session,
        "permissions": row.permissions,
        "limits": row.all_limits.model_dump(by_alias=True),
        "model": row.model or None,
        "workspace": row.workspace or None,
        "enabled": row.is_enabled,
        "versionNumber": row.last_version_number,
        "createdAt": row.created_at,
        "updatedAt": row.updated_at,
    }
