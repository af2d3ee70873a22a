"""Lookups, dialog contexts and responses that the pages of a history share."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib import messages
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django_htmx.http import trigger_client_event

from access_app.role import Role
from agentcms.ids import parse_whole_number
from agentcms.web.dialogs import is_htmx
from agentcms.web.template_context import TemplateContext
from agents_app.models import Agent
from agents_app.views.access import archived_message, missing_role_message, visible_agents
from versions_app.models import AgentVersion
from versions_app.models.version import get_head_version, get_live_version

POINTER_NAMES = ("live", "head")


def get_agent_with_versions(request: HttpRequest, agent_id: str) -> Agent:
    """Return a visible agent with its live and head version. Raise Http404."""
    return get_object_or_404(visible_agents(request).with_versions(), pk=agent_id)


def get_version(agent: Agent, number: int) -> AgentVersion:
    """Return a version of the agent. Raise Http404."""
    return get_object_or_404(agent.versions, version_number=number)


def get_versions(agent: Agent, labels: Sequence[str]) -> list[AgentVersion]:
    """Return versions of an agent by number, `live` or `head`, in one query. Raise Http404."""
    pointers = dict(zip(POINTER_NAMES, pointer_numbers(agent), strict=True))
    # Any other text is 0, the number of no version.
    numbers = [pointers.get(label) or parse_whole_number(label) for label in labels]
    versions = {version.version_number: version for version in agent.versions.filter(version_number__in=numbers)}
    if not all(number in versions for number in numbers):
        raise Http404
    return [versions[number] for number in numbers]


def pointer_numbers(agent: Agent) -> tuple[int, int]:
    """Return the numbers of the live and the head version."""
    return get_live_version(agent).version_number, get_head_version(agent).version_number


def confirmation_context(
    request: HttpRequest, agent: Agent, version: AgentVersion | None, form: Form | None, notice: str, role: Role
) -> TemplateContext:
    """Return the context of every confirmation dialog, with the reason if the user lacks the role."""
    return {
        "agent": agent,
        "back": reverse("versions:list", args=[agent.pk]),
        "live": agent.active_version,
        "draft": agent.head_version if agent.has_draft else None,
        "version": version,
        "form": form,
        "notice": notice,
        "why_not": archived_message(agent) or missing_role_message(request, agent, role),
    }


def success_response(
    request: HttpRequest, agent: Agent, message: str, *, undo: str = "", activated: bool = False
) -> HttpResponse:
    """Respond to a successful action: events that update the page for HTMX, else a redirect to the history."""
    if not is_htmx(request):
        messages.success(request, message, extra_tags=undo)
        return redirect("versions:list", agent.pk)
    # htmx replaces nothing after a 204. The page listens to the events.
    response = HttpResponse(status=204)
    # At the body, because the dialog that sent the request is removed by then.
    trigger_client_event(response, "history-changed", {"target": "body", "message": message, "undo": undo})
    if activated:
        trigger_client_event(response, "version-activated", {"target": "body"})
    return response


def failure_response(request: HttpRequest, agent: Agent, message: str) -> HttpResponse:
    """Respond to an action that failed without any change."""
    if not is_htmx(request):
        messages.error(request, message)
        return redirect("versions:list", agent.pk)
    response = HttpResponse(status=204)
    trigger_client_event(response, "history-changed", {"target": "body", "message": message, "kind": "fault"})
    return response


def history_url(name: str, agent: Agent, *extra_args: object) -> str:
    return reverse(f"versions:{name}", args=[agent.pk, *extra_args])
