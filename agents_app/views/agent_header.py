"""The header of every page of an agent: its name, its status and the tabs."""

from __future__ import annotations

from enum import StrEnum

from django.http import HttpRequest, HttpResponse

from agentcms.web.dialogs import is_htmx, render_dialog
from agentcms.web.template_context import TemplateContext
from agents_app.configuration.references import with_distinct_messages
from agents_app.models import Agent
from agents_app.views.access import permission_context
from agents_app.views.status import agent_status, find_drafts, find_warnings

MAX_WARNINGS = 3  # above the fields, which mark each of them


class AgentTab(StrEnum):
    """The tabs of an agent. A page without a tab of its own marks the one that it belongs to."""

    EDIT = "edit"
    PLAYGROUND = "playground"
    HISTORY = "history"
    LIVE_HISTORY = "live_history"
    RUNS = "runs"
    QUALITY = "quality"
    USED_BY = "used_by"


def header_context(request: HttpRequest, agent: Agent, tab: AgentTab) -> TemplateContext:
    """Return the context of agents/base.html: the agent with its status, and the user's permissions.

    `agent` comes from `get_agent()`, with its versions and the role of the user.
    """
    warnings, draft = find_warnings([agent])[agent.pk], find_drafts([agent]).get(agent.pk)
    # Those that matter most come first: the page only counts the last ones, and says that the agent runs without them.
    messages = sorted(with_distinct_messages(warnings), key=lambda warning: not warning.stops_answers)
    return {
        "nav": "agents",
        "tab": tab,
        "agent": agent,
        "status": agent_status(agent, warnings, draft),
        "missing_references": warnings,
        "warnings": messages[:MAX_WARNINGS],
        "more_warnings": len(messages[MAX_WARNINGS:]),
        "draft": draft,
        **permission_context(request, agent),
    }


def render_agent_dialog(
    request: HttpRequest, agent: Agent, tab: AgentTab, context: TemplateContext, status: int = 200
) -> HttpResponse:
    """Render the question before an action on an agent: a dialog for htmx, else a page with its header."""
    if not is_htmx(request):
        context = {**header_context(request, agent, tab), **context}
    return render_dialog(request, context, status, page="agents/act.html")
