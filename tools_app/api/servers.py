"""API views of MCP servers and their tools, as callers use them."""

from __future__ import annotations

import asyncio
from typing import NoReturn

from django.conf import settings
from django.http import HttpResponse
from pydantic import BaseModel
from rest_framework.request import Request

from agentcms.api.parsers import json_object_body
from agentcms.api.query_params import QueryParams
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.db.connections import return_connection
from agentcms.errors import ApiError, BadRequest, Conflict, NotFound
from agentcms.wire.canonical import text_or_json
from agentcms.wire.json_types import JSONObject
from agents_app.api.idempotency import idempotent_while
from agents_app.api.idempotent_calls import idempotent_call, note_sent
from agents_app.api.strict_requests import checking_names, warning_payloads
from agents_app.configuration.schema import WIRE_CONFIG
from jobs_app.api.representation import job_response
from runs_app.engine.start.concurrency_limits import reject_limit_of_user
from runs_app.events.stream_chunks import to_storable_json
from runs_app.events.streams import StreamSlot
from tools_app.api.lookups import get_changeable_server, get_definition, get_server, require_tool_caller
from tools_app.api.representation import client_body, directory_entry, tool_body
from tools_app.mcp.cached_servers import Server, server_from_row
from tools_app.mcp.definitions import Definition
from tools_app.mcp.errors import LARGE_MESSAGE, McpError, UnknownTool
from tools_app.mcp.headers import CallerNames
from tools_app.mcp.listing import accept_definition, enqueue_listing, enqueue_listing_soon
from tools_app.models import McpServer

SESSION_SECONDS = 60  # at most, beside the call itself
RESOURCES_MESSAGE = "Resources of MCP servers are not supported. Use their tools."


class ServersView(JSONView):
    """The directory of the enabled servers that the user may see."""

    def get(self, request: Request) -> HttpResponse:
        with QueryParams(request) as query:
            paging = query.paging(100)
            # The registry protocol of MCP pages by limit and offset, the published client by page and perPage.
            limit = query.integer("limit", paging.per_page, 1, 1000)
            offset = query.integer("offset", paging.start)
            unknown = query.check_unknown_names()
        rows = McpServer.objects.for_user(request.user).without_definitions().filter(is_enabled=True)
        count = rows.count()
        end = offset + limit
        body: JSONObject = {
            "servers": [directory_entry(row) for row in rows[offset:end]],
            "total_count": count,
            "next": f"/api/mcp/v0/servers?limit={limit}&offset={end}" if end < count else None,
        }
        return json_response(body | warning_payloads(unknown))


class ServerView(JSONView):
    """One server of the directory."""

    def get(self, request: Request, server_id: str) -> HttpResponse:
        with QueryParams(request) as query:
            version = query.text("version")
            unknown = query.check_unknown_names()
        row = get_server(request, server_id)
        if version is not None and version != str(row.last_version_number):
            raise NotFound(f"Only version {row.last_version_number} of MCP server {server_id} is in use")
        return json_response(directory_entry(row) | warning_payloads(unknown))


class ToolsView(JSONView):
    """The tools that a server listed last."""

    def get(self, request: Request, server_id: str) -> HttpResponse:
        row = get_server(request, server_id)
        accepted = row.accepted_definitions  # once, because it reads the definitions of all tools
        tools = [tool_body(definition, accepted.get(name)) for name, definition in row.definitions.items()]
        return json_response({"tools": tools})


class ToolView(JSONView):
    """One tool of a server."""

    def get(self, request: Request, server_id: str, tool_id: str) -> HttpResponse:
        row = get_server(request, server_id)
        definition = get_definition(row, tool_id)
        return json_response(tool_body(definition, row.accepted_definitions.get(tool_id)))


class ToolCallBody(BaseModel):
    """The names in the body of a call of a tool."""

    model_config = WIRE_CONFIG

    data: JSONObject | None = None
    request_context: JSONObject | None = None  # the published client may send it; nothing reads it


def check_tool_caller(request: Request, server_id: str, tool_id: str) -> None:
    """Raise ApiError if the caller may not call the tools of a server."""
    require_tool_caller(request, get_server(request, server_id))


def max_call_seconds() -> float:
    """Return after how long a call of a tool has surely ended, with the end of its session."""
    return settings.RUN_TOOL_TIMEOUT + SESSION_SECONDS


class ExecuteView(JSONView):
    """A call of a tool by an editor. The limits of the runs of a user apply to it, and the metrics count it."""

    @idempotent_call(check_tool_caller, max_call_seconds)
    def post(self, request: Request, server_id: str, tool_id: str) -> HttpResponse:
        row = get_server(request, server_id)
        require_tool_caller(request, row)
        definition = get_definition(row, tool_id)
        body = json_object_body(request)
        arguments = body.get("data")
        if not isinstance(arguments, dict | None):
            raise BadRequest("request body", [("data", "This must be an object with the arguments of the tool.")])
        with checking_names(request, body, ToolCallBody) as names:
            pass  # nothing else of the body is checked by a schema
        reject_call(row, definition)
        caller = CallerNames(str(request.user.pk), row.owner_id)
        with StreamSlot(request.user):  # a call blocks a thread for as long as its tool works
            reject_limit_of_user(request.user)
            result = execute(server_from_row(row), tool_id, arguments or {}, caller)
        return json_response({"result": result} | warning_payloads(names.unknown))


def reject_call(row: McpServer, definition: Definition) -> None:
    """Raise Conflict for a tool that agents could not call without a person either."""
    if definition.name in row.changed_tools:
        raise Conflict("The definition of this tool changed. Accept the change first.", "definition_changed")
    if row.approval == McpServer.Approval.ALWAYS or definition.changes_something:
        raise Conflict("This tool needs approval. Call it in a run of an agent.", "approval_required")


def execute(server: Server, name: str, arguments: JSONObject, caller: CallerNames) -> object:
    """Call a tool. Raise ApiError if the server failed, or if its result is too large."""
    from runs_app.building.tools import MAX_RESULT_SIZE  # imports pydantic-ai, which is heavy

    return_connection()
    try:
        result = asyncio.run(call_in_own_loop(server, name, arguments, caller))
    except TimeoutError:
        raise ApiError(424, "The tool did not answer in time.", "tool_failed") from None
    except McpError as error:
        if isinstance(error, UnknownTool):
            enqueue_listing_soon(server.key)
        raise ApiError(424, str(error), "tool_failed") from None
    if len(text_or_json(result).encode()) > MAX_RESULT_SIZE:
        raise ApiError(424, LARGE_MESSAGE.format(title=server.title), "tool_failed")
    return result


async def call_in_own_loop(server: Server, name: str, arguments: JSONObject, caller: CallerNames) -> object:
    """Return the result of a tool, as an event loop of its own calls it. Raise TimeoutError and McpError."""
    # They import pydantic-ai, which is heavy.
    from tools_app.mcp.calls import call_mcp_tool
    from tools_app.mcp.sessions import session_pool

    try:
        async with asyncio.timeout(settings.RUN_TOOL_TIMEOUT):
            return to_storable_json(await call_mcp_tool(server, name, arguments, caller, note_sent))
    finally:
        # The sessions belong to this event loop, which ends with the call.
        await session_pool().close_all()


def check_manager(request: Request, server_id: str, **arguments: str) -> None:
    """Raise ApiError if the caller may not change a server."""
    get_changeable_server(request, server_id)


class RefreshView(JSONView):
    """A new listing of the tools of a server, by a job."""

    @idempotent_while(check_manager)
    def post(self, request: Request, server_id: str) -> HttpResponse:
        json_object_body(request)
        return job_response(enqueue_listing(get_changeable_server(request, server_id), request.user), 202)


class AcceptView(JSONView):
    """The acceptance of a changed definition, which the hash names."""

    @idempotent_while(check_manager)
    def post(self, request: Request, server_id: str, tool_id: str) -> HttpResponse:
        row = get_changeable_server(request, server_id)
        definition_hash = json_object_body(request).get("hash")
        if not isinstance(definition_hash, str):
            raise BadRequest("request body", [("hash", "This must be the hash of the definition that you accept.")])
        get_definition(row, tool_id)
        accept_definition(row.pk, tool_id, definition_hash, request.user)
        return json_response(client_body(get_server(request, server_id)))


class ResourcesView(JSONView):
    """The list of the resources of a server, which is not supported."""

    def get(self, request: Request, server_id: str) -> HttpResponse:
        reject_resources(request, server_id)


class ResourceView(JSONView):
    """A resource of a server, which is not supported."""

    def post(self, request: Request, server_id: str) -> HttpResponse:
        reject_resources(request, server_id)


def reject_resources(request: Request, server_id: str) -> NoReturn:
    """Raise ApiError, or NotFound for a server that the user may not see."""
    get_server(request, server_id)
    raise ApiError(501, RESOURCES_MESSAGE, "not_implemented")
