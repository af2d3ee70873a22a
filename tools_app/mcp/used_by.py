"""The agents that use the tools of an MCP server."""

from __future__ import annotations

from access_app.caller import Caller
from access_app.permissions import SHARED_OWNER
from agents_app.configuration.mcp_clients import MCP_CLIENTS
from agents_app.configuration.sub_agents import listed_agents, name_agents
from agents_app.models import Agent, AgentQuerySet
from tools_app.models import McpServer


def find_agents_using_server(server: McpServer, owner_id: str | None = None) -> AgentQuerySet:
    """Return the agents whose live version or draft names a tool of a server.

    `owner_id` is the owner for whom the name is resolved, by default that of the server.
    """
    owner_id = server.owner_id if owner_id is None else owner_id
    # The references of a version begin with the key of the server, which has no underscore.
    agents = Agent.objects.referring_to(MCP_CLIENTS, f'"{server.key}_')
    # Agents of other teams may name the same key, but it does not resolve to this server.
    return agents if owner_id == SHARED_OWNER else agents.filter(owner_id=owner_id)


def find_agents_losing_server(server: McpServer, previous_owner_id: str) -> AgentQuerySet:
    """Return the agents that lose the tools of a server, which belonged to another team before."""
    if server.owner_id == SHARED_OWNER:
        return Agent.objects.none()
    return find_agents_using_server(server, previous_owner_id).exclude(owner_id=server.owner_id)


def describe_loss(user: Caller, server: McpServer, previous_owner_id: str) -> str:
    """Return a sentence with the agents of `find_agents_losing_server()`. Empty without any."""
    names = name_agents(listed_agents(user, find_agents_losing_server(server, previous_owner_id)))
    if not names:
        return ""
    return f"The server moved to another team. These agents run without its tools from now on: {names}."
