"""What the API's views of agents and versions share: find and check, and answer."""

from __future__ import annotations

import re
from typing import Any

from django.http import HttpResponse
from rest_framework.request import Request

from access_app.roles import Role, require_granted
from agentcms.errors import ApiError, BadRequest, NotFound, PreconditionFailed
from agentcms.query import Query
from agentcms.rest import api_error, encode
from agentcms.wire import wire_time
from agents_app import answers
from agents_app.held import held
from agents_app.models import Agent, AgentQuerySet
from agents_app.references import place, warnings
from agents_app.shapes import ShapeError

_TAG = re.compile(r'(?:W/)?"([^"]*)"')


@api_error.register
def _shape(exception: ShapeError) -> ApiError:
    return BadRequest("request body", exception.issues)


def missing(agent_id: str) -> NotFound:
    """The one answer for an agent that is not there and for one that the caller may not see."""
    return NotFound(f"Stored agent with id {agent_id} not found")


def visible(request: Request) -> AgentQuerySet:
    """The agents that the caller may see."""
    return Agent.objects.for_user(request.user)


def hold(request: Request, agent_id: str, role: Role, hint: str = "") -> Agent:
    """The agent under its lock, once the caller may see it, has the role for it, and knows its present state.

    Inside a transaction; what the view then answers is what it did itself, however many write at once.
    """
    agent = held(request.user, agent_id)
    if agent is None:
        raise missing(agent_id)
    require_granted(request.user, role, agent, hint)
    check_match(request, agent)
    return agent


def check_match(request: Request, agent: Agent) -> None:
    """Refuse a write whose `If-Match` names another state; the registry's part of a tag does not count."""
    header = request.META.get("HTTP_IF_MATCH")
    if header is None or header.strip() == "*":  # a blank one is no match: the server hands over odd bytes as blank
        return
    if agent.etag not in {tag.rpartition(".")[0] for tag in _TAG.findall(header)}:
        raise PreconditionFailed(last_change(agent), answers.etag(agent.row_key, agent.revision))


def last_change(agent: Agent) -> str:
    """What changed the agent last, by whom and when, in a sentence."""
    version: Any = agent.versions.order_by("-version_number").first()
    activation: Any = agent.activations.first()
    # A save that went live has one time for both, and is told as a save.
    newest = max(filter(None, (version, activation)), key=lambda each: each.created_at)
    who, at = newest.author_name or "The system", wire_time(newest.created_at)
    if agent.updated_at > newest.created_at:
        done = f"Somebody handed the agent over or dropped its draft at {wire_time(agent.updated_at)}"
    elif newest is version:
        done = f"{who} saved version {version.version_number} at {at}{how_saved(agent, version)}"
    else:
        done = f"{who} made version {activation.to_version_number} live at {at}"
    return f"{done}. Read the agent and try again."


def how_saved(agent: Agent, version: Any) -> str:
    """Whether a version went live as it was saved, and what it changed, as the rest of a sentence."""
    state = ", live at once" if version.pk == agent.active_version_id else ", as a draft" if agent.has_draft else ""
    return f"{state}, changing {', '.join(version.changed_fields)}" if version.changed_fields else state


def known_already(request: Request, etag: str) -> bool:
    """Whether `If-None-Match` names this state."""
    header = request.META.get("HTTP_IF_NONE_MATCH", "").strip()
    return bool(header) and (header == "*" or etag.strip('"') in _TAG.findall(header))


def reply(text: str, status: int = 200, etag: str = "") -> HttpResponse:
    """An answer that is JSON text already."""
    response = HttpResponse(text.encode(), "application/json", status)
    if etag:
        response.headers["ETag"] = etag
        response.headers["Cache-Control"] = "private, no-cache"
    return response


def refuse_warnings(agent: Agent, version: Any) -> None:
    """Refuse what names things that nothing registered, at their places."""
    row = answers.Row.of(agent, version)
    known = answers.known_agents([row]).get(row.id, ())
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
    row = answers.Row.of(agent, version)
    return reply(answers.text(row), status, row.etag)


def json_reply(data: Any, status: int = 200) -> HttpResponse:
    return HttpResponse(encode(data), "application/json", status)
