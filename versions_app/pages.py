"""What the pages of a history share: find, check and answer."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django_htmx.http import trigger_client_event

from access_app.roles import Role, RoleRequired, effective_role
from agents_app.models import Agent, AgentQuerySet
from versions_app.models import AgentVersion

GET_POST = ("GET", "HEAD", "POST")

# What a page of a history shows of an agent needs neither of its two pictures.
PICTURES = ("active_version__snapshot_text", "head_version__snapshot_text")


def visible(request: HttpRequest) -> AgentQuerySet:
    """The agents that the caller may see, each with the role that its owner granted."""
    return Agent.objects.for_user(request.user).with_role(request.user)


def find(request: HttpRequest, agent_id: str, *, pictures: bool = False) -> Agent:
    """The agent with its live and its head version; one that the caller may not see does not exist."""
    agents = visible(request).with_versions()
    return get_object_or_404(agents if pictures else agents.defer(*PICTURES), pk=agent_id)


def find_version(agent: Agent, number: int) -> AgentVersion:
    """A version is found through its agent, never by itself."""
    return get_object_or_404(agent.versions, version_number=number)


def hold(request: HttpRequest, agent_id: str, role: Role) -> Agent:
    """The agent under its lock, once the caller may see it and has the role for it. Inside a transaction."""
    try:
        agent = visible(request).locked(agent_id)
    except Agent.DoesNotExist:
        raise Http404 from None
    if not may(request, agent, role):
        raise RoleRequired(role, agent.owner_id)
    return agent


def may(request: HttpRequest, agent: Any, role: Role) -> bool:
    """Whether the caller has the role for the agent, which came through `visible`."""
    granted = effective_role(request.user, agent.granted)
    return granted is not None and granted.covers(role)


def why_not(request: HttpRequest, agent: Agent, role: Role) -> str:
    """Why the caller may not do what needs a role; empty for those who may."""
    if may(request, agent, role):
        return ""
    where = f"of {agent.owner_id}" if agent.owner_id else "in the shared space"
    return f"This needs the role {role.value} {where}. Ask a manager of the team for it."


def question(
    request: HttpRequest, agent: Agent, version: AgentVersion | None, form: Any, notice: str, role: Role
) -> dict[str, Any]:
    """What every question of an act shows: what it is about, and why the caller may not."""
    return {
        "nav": "agents",
        "agent": agent,
        "live": agent.active_version,
        "draft": agent.head_version if agent.has_draft else None,
        "version": version,
        "form": form,
        "notice": notice,
        "why_not": why_not(request, agent, role),
        "action": request.path,
    }


def show_act(request: HttpRequest, context: dict[str, Any], status: int = 200) -> HttpResponse:
    """What an act asks before it is done: a dialog for htmx, else a page."""
    template = "versions/_act.html" if is_htmx(request) else "versions/act.html"
    response = render(request, template, context, status=status)
    response.headers["Vary"] = "HX-Request, Cookie"
    return response


def done(request: HttpRequest, agent: Agent, message: str, *, undo: str = "", activated: bool = False) -> HttpResponse:
    """After an act: events for htmx, so that the page tells the truth without a reload, else the history anew."""
    if not is_htmx(request):
        messages.success(request, message, extra_tags=undo)
        return redirect("versions:list", agent.pk)
    response = HttpResponse(status=204)
    trigger_client_event(response, "history-changed", {"target": "body", "message": message, "undo": undo})
    if activated:
        trigger_client_event(response, "version-activated", {"target": "body"})
    return response


def failed(request: HttpRequest, agent: Agent, message: str) -> HttpResponse:
    """What was asked could not be done and nothing changed."""
    if not is_htmx(request):
        messages.error(request, message)
        return redirect("versions:list", agent.pk)
    response = HttpResponse(status=204)
    trigger_client_event(response, "history-changed", {"target": "body", "message": message, "kind": "fault"})
    return response


def is_htmx(request: HttpRequest) -> bool:
    return bool(getattr(request, "htmx", False))


def address(name: str, agent: Agent, *more: Any) -> str:
    return reverse(f"versions:{name}", args=[agent.pk, *more])
