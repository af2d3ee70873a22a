"""The tool that reads the resources of an MCP server. Agents get it only where they name it.

Imports pydantic-ai, which is heavy. Import this module only where a server is asked.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from mcp_types import PaginatedResult
from pydantic import AnyUrl
from pydantic_ai.mcp import MCPError, MCPToolset

from agentcms.wire.json_types import JSONMapping
from tools_app.mcp.definitions import RESOURCE_TOOL, Definition, Listing
from tools_app.mcp.errors import AnswerTooLarge, McpError

Page = TypeVar("Page", bound=PaginatedResult)

MAX_LISTED_RESOURCES = 1000  # resources in an answer
MAX_LISTED_LENGTH = 1024 * 1024  # characters of them: the result of a tool may have less
MAX_RESOURCE_PAGES = 250  # as the client library reads at most
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
    uri = str(arguments.get("uri") or "")
    if not uri:
        return await list_resources(toolset)
    try:
        # Here, although the library checks it again: of an invalid answer of the server, it raises a ValueError too.
        AnyUrl(uri)
    except ValueError:
        raise McpError(URI_MESSAGE.format(uri=uri[:200])) from None
    return await toolset.read_resource(uri)


async def list_resources(toolset: MCPToolset[None]) -> list[dict[str, str]]:
    """Return the resources of a server with their URIs, then the templates of URIs. Raise AnswerTooLarge."""
    if not toolset.capabilities.resources:
        return []
    # Page by page: the library collects up to 250 pages of 4 MB before it gives up.
    listed = ListedResources([])
    async for page in pages(toolset.client.list_resources_mcp):
        if listed.add("uri", [(str(item.uri), item) for item in page.resources]):
            return listed.entries
    async for last in pages(toolset.client.list_resource_templates_mcp):
        if listed.add("uriTemplate", [(item.uri_template, item) for item in last.resource_templates]):
            break
    return listed.entries


@dataclass
class ListedResources:
    """The resources of the pages that were read. Of their other members, which may be long, none is kept."""

    entries: list[dict[str, str]]
    length: int = 0  # characters

    def add(self, member: str, items: Iterable[tuple[str, Any]]) -> bool:
        """Add the resources of a page. Return True if there are enough. Raise AnswerTooLarge."""
        for uri, item in items:
            entry = {
                member: uri,
                "name": item.title or item.name,
                **({"description": item.description} if item.description else {}),
                **({"mimeType": item.mime_type} if item.mime_type else {}),
            }
            self.entries.append(entry)
            self.length += sum(map(len, entry.values()))
            if self.length > MAX_LISTED_LENGTH:
                raise AnswerTooLarge
            if len(self.entries) >= MAX_LISTED_RESOURCES:
                return True
        return False


async def pages(read_page: Callable[..., Awaitable[Page]]) -> AsyncIterator[Page]:
    """Yield the pages of a list one by one. Raise AnswerTooLarge for a list without end."""
    cursor: str | None = None
    for _ in range(MAX_RESOURCE_PAGES):
        page = await read_page(cursor=cursor)
        yield page
        cursor = page.next_cursor
        if not cursor:
            return
    raise AnswerTooLarge
