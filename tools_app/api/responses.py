"""Responses with a stored MCP client."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpResponse

from agentcms.api.etags import with_etag
from agentcms.api.responses import json_response
from agentcms.wire.unknown_names import UnknownName
from agents_app.api.unknown_keys import warning_payloads
from tools_app.api.representation import client_body, record_etag
from tools_app.models import McpServer


def client_response(row: McpServer, status: int = 200, unknown: Sequence[UnknownName] = ()) -> HttpResponse:
    return with_etag(json_response(client_body(row) | warning_payloads(unknown), status), record_etag(row))
