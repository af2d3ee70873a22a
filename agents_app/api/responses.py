"""Responses with an agent, and about what agents lose."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpResponse

from access_app.caller import Caller
from agentcms.api.responses import json_text_response
from agentcms.errors import BadRequest
from agentcms.wire.unknown_names import UnknownName
from agents_app.api import representation
from agents_app.configuration.references import (
    NO_AGENTS,
    find_missing_references,
    reference_path,
    reload_missing_entries,
)
from agents_app.configuration.sub_agents import listed_agents, name_agents
from agents_app.models import Agent, AgentQuerySet
from agents_app.models.version_protocol import Version


def reject_warnings(agent: Agent, version: Version) -> None:
    """Raise BadRequest with an issue for each missing reference of a version."""
    reload_missing_entries(version.references)
    row = representation.AgentRow.of(agent, version)
    known = representation.known_agents([row]).get(row.id, NO_AGENTS)
    if missing := find_missing_references(version.references, known):
        raise BadRequest(
            "request body",
            [
                (reference_path(reference.field, reference.key, version.snapshot), reference.message)
                for reference in missing
            ],
        )


def agent_response(
    agent: Agent, version: Version, status: int = 200, unknown: Sequence[UnknownName] = ()
) -> HttpResponse:
    """Return an agent with the configuration of one of its versions, and warnings about unknown names."""
    reload_missing_entries(version.references)
    row = representation.AgentRow.of(agent, version)
    warnings = representation.own_warnings_json(row)
    text = representation.agent_json(row, warnings, unknown)
    return json_text_response(text, status, representation.agent_etag(row, warnings))


def deletion_message(user: Caller, deleted: str, agents: AgentQuerySet) -> str:
    """Return the message that something is deleted, with the agents that use it. Call this before the deletion."""
    names = name_agents(listed_agents(user, agents))
    return f"{deleted} deleted. These agents run without it from now on: {names}" if names else f"{deleted} deleted"
