"""API views of the versions of stored MCP clients."""

from __future__ import annotations

from django.db import transaction
from django.http import HttpResponse
from rest_framework.request import Request

from agentcms.api.parsers import json_object_body
from agentcms.api.query_params import QueryParams
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agents_app.api.idempotency import idempotent_while
from tools_app.api.lookups import get_server, lock_changeable_server
from tools_app.api.representation import version_body
from tools_app.api.responses import client_response, refusing_invalid_versions, versions_response
from tools_app.mcp.listing import list_changed_server
from tools_app.mcp.versions import get_server_version, restore_server_version


class ClientVersionsView(JSONView):
    """The versions of an MCP server, newest first."""

    def get(self, request: Request, server_id: str) -> HttpResponse:
        with QueryParams(request) as query:
            paging = query.paging(20)
            unknown = query.check_unknown_names()
        return versions_response(get_server(request, server_id).versions.all(), paging, unknown)


class ClientVersionView(JSONView):
    """One version of an MCP server, which its number names."""

    def get(self, request: Request, server_id: str, number: str) -> HttpResponse:
        return json_response(version_body(get_server_version(get_server(request, server_id), number)))


def find_restored_server(request: Request, server_id: str, number: str) -> None:
    """Raise NotFound if the caller may not see the server."""
    get_server(request, server_id)


class ClientRestoreView(JSONView):
    """A new version with the configuration of an earlier one."""

    @idempotent_while(find_restored_server)
    def post(self, request: Request, server_id: str, number: str) -> HttpResponse:
        json_object_body(request)
        with transaction.atomic():
            row = lock_changeable_server(request, server_id)
            version = get_server_version(row, number)
            with refusing_invalid_versions():
                restored = restore_server_version(row, version)
            if restored.needs_listing:
                list_changed_server(row, request.user)
        return client_response(restored.server)
