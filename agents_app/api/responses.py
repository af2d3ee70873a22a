"""Responses that show an agent."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from rest_framework.request import Request

from agentcms.api.query_params import QueryParams
from agentcms.api.responses import json_text_response
from agentcms.errors import BadRequest
from agents_app.api import representation
from agents_app.configuration.references import find_missing_references, reference_path
from agents_app.models import Agent


def reject_warnings(agent: Agent, version: Any) -> None:
    """Refuse what names things that nothing registered, at their places."""
    row = representation.AgentRow.of(agent, version)
    known = representation.known_agents([row]).get(row.id, ())
    if found := find_missing_references(version.references, known):
        raise BadRequest(
            "request body", [(reference_path(each.field, each.key, version.snapshot), each.message) for each in found]
        )


def is_strict(request: Request) -> bool:
    """Whether the caller wants warnings to be errors."""
    with QueryParams(request) as query:
        return query.boolean("strict")


def agent_response(agent: Agent, version: Any, status: int = 200) -> HttpResponse:
    """The agent in hand, showing one of its versions."""
    row = representation.AgentRow.of(agent, version)
    return json_text_response(representation.agent_json(row), status, row.etag)
