"""Responses with a stored MCP client or an ACP agent."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpResponse

from agentcms.api.etags import with_etag
from agentcms.api.responses import json_response
from agentcms.wire.unknown_names import UnknownName
from agents_app.api.unknown_keys import warning_payloads
from tools_app.api.representation import acp_agent_body, client_body, record_etag
from tools_app.models import AcpAgent, McpServer


def client_response(
    row: McpServer, status: int = 200, unknown: Sequence[UnknownName] = (), loss: str = ""
) -> HttpResponse:
    """Return the response with a server. Warnings are the unknown names of the request, and a loss by its move."""
    body = client_body(row) | warning_payloads(unknown)
    if loss:
        body["warnings"] = [*body.get("warnings", ()), {"field": "ownerId", "key": "ownerId", "message": loss}]
    return with_etag(json_response(body, status), record_etag(row))


def acp_agent_response(row: AcpAgent, status: int = 200, unknown: Sequence[UnknownName] = ()) -> HttpResponse:
    return with_etag(json_response(acp_agent_body(row) | warning_payloads(unknown), status), record_etag(row))
