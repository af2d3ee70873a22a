"""Responses with a stored MCP client or an ACP agent, and with their versions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpResponse

from agentcms.api.etags import with_etag
from agentcms.api.pagination import Paging, page_payload
from agentcms.api.responses import json_response
from agentcms.errors import Unprocessable
from agentcms.wire.unknown_names import UnknownName
from agents_app.api.strict_requests import warning_payloads
from tools_app.api.representation import acp_agent_body, client_body, client_etag, record_etag, version_body
from tools_app.models import AcpAgent, AcpAgentVersion, McpServer, McpServerVersion


def client_response(
    row: McpServer, status: int = 200, unknown: Sequence[UnknownName] = (), loss: str = ""
) -> HttpResponse:
    """Return the response with a server. Warnings are the unknown names of the request, and a loss by its move."""
    body = client_body(row) | warning_payloads(unknown)
    if loss:
        body["warnings"] = [*body.get("warnings", ()), {"field": "ownerId", "key": "ownerId", "message": loss}]
    return with_etag(json_response(body, status), client_etag(row))


def acp_agent_response(row: AcpAgent, status: int = 200, unknown: Sequence[UnknownName] = ()) -> HttpResponse:
    return with_etag(json_response(acp_agent_body(row) | warning_payloads(unknown), status), record_etag(row))


def versions_response(
    versions: QuerySet[McpServerVersion] | QuerySet[AcpAgentVersion], paging: Paging, unknown: Sequence[UnknownName]
) -> HttpResponse:
    """Return the response with a page of versions."""
    page = [version_body(version) for version in versions[paging.start : paging.stop]]
    payload = page_payload("versions", page, versions.count(), paging.page, paging.per_page)
    return json_response(payload | warning_payloads(unknown))


@contextmanager
def refusing_invalid_versions() -> Iterator[None]:
    """Turn the ValidationError of a version that is no longer valid into a 422."""
    try:
        yield
    except ValidationError as error:
        message = f"This version cannot be restored: {' '.join(error.messages)}"
        raise Unprocessable(message, "not_restorable") from None
