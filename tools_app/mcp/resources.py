"""The tool that reads the resources of an MCP server. Agents get it only where they name it.

Imports pydantic-ai, which is heavy. Import this module only where a server is asked.
"""

from __future__ import annotations

from pydantic_ai.mcp import MCPError, MCPToolset

from agentcms.wire.json_types import JSONMapping
from tools_app.mcp.accepted_definitions import RESOURCE_TOOL, Definition, Listing
from tools_app.mcp.errors import McpError

MAX_LISTED_RESOURCES = 1000  # resources in an answer
URI_MESSAGE = "'{uri}' is not the URI of a resource. Call the tool without a URI for a list."


async def has_resources(toolset: MCPToolset[None]) -> bool:
    """Return whether a server lists a resource. One that fails to list them has none."""
    try:
        return bool(await toolset.list_resources() or await toolset.list_resource_templates())
    except MCPError:
        return False


def add_resource_tool(listing: Listing) -> Listing:
    """Return a list with the tool that reads resources. A tool of the server with its name takes precedence."""
    return Listing({RESOURCE_TOOL.name: RESOURCE_TOOL, **listing.definitions}, listing.left_out)


def reads_resources(definition: Definition | None) -> bool:
    """Return whether a tool is the one that reads resources, and no tool of the server."""
    return definition is not None and definition.hash == RESOURCE_TOOL.hash


async def read_mcp_resource(toolset: MCPToolset[None], arguments: JSONMapping) -> object:
    """Return a resource, or the list of all without a URI. Raise McpError."""
    uri = arguments.get("uri")
    if not uri:
        return await list_resources(toolset)
    try:
        return await toolset.read_resource(str(uri))
    except ValueError:  # a text that is no URI
        raise McpError(URI_MESSAGE.format(uri=str(uri)[:200])) from None


async def list_resources(toolset: MCPToolset[None]) -> list[dict[str, str]]:
    """Return the resources of a server with their URIs, then the templates of URIs."""
    resources = [("uri", resource.uri, resource) for resource in await toolset.list_resources()]
    templates = [("uriTemplate", item.uri_template, item) for item in await toolset.list_resource_templates()]
    return [
        {
            member: uri,
            "name": item.title or item.name,
            **({"description": item.description} if item.description else {}),
            **({"mimeType": item.mime_type} if item.mime_type else {}),
        }
        for member, uri, item in [*resources, *templates][:MAX_LISTED_RESOURCES]
    ]
