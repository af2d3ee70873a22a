"""The rendering of the editor."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from agentcms.web.dialogs import is_htmx, vary_on_htmx
from agents_app.forms.existing_agent import ExistingAgentForm
from agents_app.models import Agent
from agents_app.views.access import can_duplicate
from agents_app.views.agent_header import AgentTab, header_context
from agents_app.views.use_examples import use_examples


def render_editor(
    request: HttpRequest, agent: Agent, form: ExistingAgentForm, status: int = 200, **extra: Any
) -> HttpResponse:
    """Render the editor's page, or for an htmx POST only the parts around the fields."""
    context = {
        **header_context(request, agent, AgentTab.EDIT),
        "may_create": can_duplicate(request, agent),
        "form": form,
        "use_examples": partial(use_examples, request, agent),  # for the whole page only
        "opened": {"head": form["head"].value(), "live": form["live"].value()},
        **extra,
    }
    template = "agents/_editor_header.html" if request.method == "POST" and is_htmx(request) else "agents/edit.html"
    response = render(request, template, context, status=status)
    vary_on_htmx(response)
    return response
