"""API views of stored MCP clients: the configuration of MCP servers, with versions."""

from __future__ import annotations

from django.db import transaction
from django.http import HttpResponse
from rest_framework.request import Request

from access_app.permissions import SHARED_OWNER
from agentcms.api.pagination import page_payload
from agentcms.api.parsers import json_object_body
from agentcms.api.query_params import QueryParams
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.errors import Conflict
from agents_app.api.unknown_keys import warning_payloads
from tools_app.api.lookups import get_changeable_server, get_server, require_manager
from tools_app.api.representation import client_body, version_body
from tools_app.api.schemas import apply_client, parse_client_change, parse_new_client
from tools_app.mcp.listing import enqueue_listing
from tools_app.models import McpServer


class ClientsView(JSONView):
    """List of the MCP servers that the user may see, and the creation of one."""

    def get(self, request: Request) -> HttpResponse:
        with QueryParams(request) as query:
            paging = query.paging(100)
            owner_id = query.text("ownerId")
            unknown = query.check_unknown_names()
        rows = McpServer.objects.for_user(request.user)
        if owner_id is not None:
            rows = rows.filter(owner_id=owner_id)
        page = [client_body(row) for row in rows[paging.start : paging.stop]]
        payload = page_payload("mcpClients", page, rows.count(), paging.page, paging.per_page)
        return json_response(payload | warning_payloads(unknown))

    def post(self, request: Request) -> HttpResponse:
        fields = parse_new_client(json_object_body(request))
        row = McpServer(key=fields["id"], owner_id=fields.get("owner_id") or SHARED_OWNER)
        require_manager(request, row)
        with transaction.atomic():
            if McpServer.objects.filter(key=row.key).exists():
                raise Conflict(f"MCP server with id {row.key} already exists")
            apply_client(row, fields)
            row.save()
            if row.is_enabled:
                enqueue_listing(row, request.user)
        return json_response(client_body(row), 201)


class ClientView(JSONView):
    """An MCP server: read, change and delete."""

    def get(self, request: Request, server_id: str) -> HttpResponse:
        return json_response(client_body(get_server(request, server_id)))

    def patch(self, request: Request, server_id: str) -> HttpResponse:
        row = get_changeable_server(request, server_id)
        fields = parse_client_change(json_object_body(request), row)
        with transaction.atomic():
            row = McpServer.objects.select_for_update().get(pk=row.pk)
            address = (row.transport, row.url, row.command_key, row.encrypted_headers)
            apply_client(row, fields)
            require_manager(request, row)  # also of the new team
            row.save()
            if row.is_enabled and address != (row.transport, row.url, row.command_key, row.encrypted_headers):
                enqueue_listing(row, request.user)
        return json_response(client_body(row))

    def delete(self, request: Request, server_id: str) -> HttpResponse:
        get_changeable_server(request, server_id).delete()
        return json_response({"success": True, "message": f"MCP server {server_id} deleted"})


class ClientVersionsView(JSONView):
    """The versions of an MCP server, newest first."""

    def get(self, request: Request, server_id: str) -> HttpResponse:
        with QueryParams(request) as query:
            paging = query.paging(20)
            unknown = query.check_unknown_names()
        versions = get_server(request, server_id).versions.all()
        page = [version_body(version) for version in versions[paging.start : paging.stop]]
        payload = page_payload("versions", page, versions.count(), paging.page, paging.per_page)
        return json_response(payload | warning_payloads(unknown))
