"""The list of agents."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from access_app.role import Role
from access_app.teams import highest_role, known_owners
from agents_app.views.access import visible_agents
from agents_app.views.list_filters import AgentListState


@require_safe
@login_required
def agent_list(request: HttpRequest) -> HttpResponse:
    """Render the list of agents."""
    listing = AgentListState(visible_agents(request), request.GET)
    highest = highest_role(request.user)
    context = {
        "nav": "agents",
        "listing": listing,
        "filters": [*listing.filter_choices(known_owners(request.user, Role.VIEWER))],
        "may_create": highest is not None and highest.covers(Role.EDITOR),
        "may_delete": highest is not None and highest.covers(Role.PUBLISHER),
    }
    return render(request, "agents/list.html", context)
