"""API views of stored MCP clients: the configuration of MCP servers."""

from __future__ import annotations

from django.db import transaction
from django.http import HttpResponse
from rest_framework.request import Request

from access_app.permissions import SHARED_OWNER
from agentcms.api.etags import is_not_modified
from agentcms.api.pagination import page_payload
from agentcms.api.query_params import QueryParams
from agentcms.api.responses import json_response, json_text_response
from agentcms.api.views import JSONView
from agentcms.db.locks import reserve_new_key
from agents_app.api.idempotency import idempotent
from agents_app.api.strict_requests import warning_payloads
from agents_app.configuration.sub_agents import listed_agents
from tools_app.api.lookups import get_server, lock_changeable_server, require_manager
from tools_app.api.representation import client_body, client_etag
from tools_app.api.responses import client_response
from tools_app.api.schemas import (
    CLIENT_CHANGE,
    McpClientBody,
    change_client,
    read_client,
)
from tools_app.mcp.listing import list_changed_server
from tools_app.mcp.used_by import describe_loss, find_agents_using_server
from tools_app.models import McpServer
from tools_app.quotas import require_server_quota


class ClientsView(JSONView):
    """List of the MCP servers that the user may see, and the creation of one."""

    def get(self, request: Request) -> HttpResponse:
        with QueryParams(request) as query:
            paging = query.paging(100)
            owner_id = query.text("ownerId")
            unknown = query.check_unknown_names()
        rows = McpServer.objects.for_user(request.user).without_definitions()
        if owner_id is not None:
            rows = rows.filter(owner_id=owner_id)
        page = [client_body(row) for row in rows[paging.start : paging.stop]]
        payload = page_payload("mcpClients", page, rows.count(), paging.page, paging.per_page)
        return json_response(payload | warning_payloads(unknown))

    @idempotent
    def post(self, request: Request) -> HttpResponse:
        fields, unknown = read_client(request, McpClientBody)
        row = McpServer(key=next(iter(fields["servers"])), owner_id=fields.get("owner_id") or SHARED_OWNER)
        require_manager(request, row)
        with transaction.atomic():
            reserve_new_key(McpServer, row.key)
            require_server_quota(row.owner_id)
            change_client(row, fields)
            row.save()
            if row.is_enabled:
                list_changed_server(row, request.user)
        return client_response(row, 201, unknown)


class ClientView(JSONView):
    """An MCP server: read, change and delete."""

    def get(self, request: Request, server_id: str) -> HttpResponse:
        row = get_server(request, server_id)
        if is_not_modified(request, client_etag(row)):
            return json_text_response("", 304, client_etag(row))
        return client_response(row)

    def patch(self, request: Request, server_id: str) -> HttpResponse:
        with transaction.atomic():
            row = lock_changeable_server(request, server_id)
            fields, unknown = read_client(request, CLIENT_CHANGE, row)
            # Before the change: another address or other headers may list other tools.
            listed_by, owner_id = (row.is_enabled, row.connection_columns), row.owner_id
            change_client(row, fields)
            require_manager(request, row)  # also of the new team
            if row.owner_id != owner_id:
                require_server_quota(row.owner_id)
            row.save()
            if row.is_enabled and listed_by != (True, row.connection_columns):
                list_changed_server(row, request.user)
            loss = describe_loss(request.user, row, owner_id) if row.owner_id != owner_id else ""
        return client_response(row, unknown=unknown, loss=loss)

    def delete(self, request: Request, server_id: str) -> HttpResponse:
        with transaction.atomic():
            row = lock_changeable_server(request, server_id)
            count = find_agents_using_server(row).count()
            row.delete()
        users = f". {count} agent{'s run' if count > 1 else ' runs'} without its tools" if count else ""
        return json_response({"success": True, "message": f"MCP server {server_id} deleted{users}"})


class ClientDependentsView(JSONView):
    """The agents that use the tools of an MCP server."""

    def get(self, request: Request, server_id: str) -> HttpResponse:
        return json_response(listed_agents(request.user, find_agents_using_server(get_server(request, server_id))))
