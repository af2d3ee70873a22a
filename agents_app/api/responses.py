"""Responses that show an agent."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from rest_framework.request import Request

from agentcms.api.query_params import Query
from agentcms.api.responses import reply
from agentcms.errors import BadRequest
from agents_app.api import representation
from agents_app.configuration.references import place, warnings
from agents_app.models import Agent


def refuse_warnings(agent: Agent, version: Any) -> None:
    """Refuse what names things that nothing registered, at their places."""
    row = representation.Row.of(agent, version)
    known = representation.known_agents([row]).get(row.id, ())
    if found := warnings(version.references, known):
        raise BadRequest(
            "request body", [(place(each.field, each.key, version.snapshot), each.message) for each in found]
        )


def is_strict(request: Request) -> bool:
    """Whether the caller wants warnings to be errors."""
    with Query(request) as query:
        return query.flag("strict")


def agent_reply(agent: Agent, version: Any, status: int = 200) -> HttpResponse:
    """The agent in hand, showing one of its versions."""
    row = representation.Row.of(agent, version)
    return reply(representation.text(row), status, row.etag)
