"""The agents that use the tools of an MCP server."""

from __future__ import annotations

from django.db.models import Q
from django.db.models.fields.json import KeyTextTransform

from access_app.permissions import SHARED_OWNER
from agents_app.configuration.mcp_clients import MCP_CLIENTS
from agents_app.models import Agent, AgentQuerySet
from tools_app.models import McpServer


def find_users(server: McpServer) -> AgentQuerySet:
    """Return the agents whose live version or draft names a tool of the server."""
    # The references of a version begin with the key of the server, which has no underscore.
    reference = f'"{server.key}_'
    agents = Agent.objects.annotate(
        live_tools=KeyTextTransform(MCP_CLIENTS, "active_version__references"),
        head_tools=KeyTextTransform(MCP_CLIENTS, "head_version__references"),
    ).filter(Q(live_tools__contains=reference) | Q(head_tools__contains=reference))
    # Agents of other teams may name the same key, but it does not resolve to this server.
    return agents if server.owner_id == SHARED_OWNER else agents.filter(owner_id=server.owner_id)
