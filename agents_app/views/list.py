"""The list of agents."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from access_app.role import Role
from access_app.teams import highest_role, known_owners
from agentcms.web.dialogs import is_htmx, vary_on_htmx
from agents_app.views.access import visible_agents
from agents_app.views.filter_choices import filter_fields
from agents_app.views.list_filters import AgentListState


@require_safe
@login_required
def agent_list(request: HttpRequest) -> HttpResponse:
    """Render the list of agents. A search while typing gets the results alone."""
    listing = AgentListState(visible_agents(request), request.GET)
    if listing.has_blank_params and not is_htmx(request):
        return redirect(listing.address)
    highest = highest_role(request.user)
    context = {
        "nav": "agents",
        "listing": listing,
        "may_create": highest is not None and highest.covers(Role.EDITOR),
        "may_delete": highest is not None and highest.covers(Role.PUBLISHER),
    }
    if is_htmx(request):
        response = render(request, "agents/_list_results.html", context)
        # Replaced, not pushed: otherwise, each letter of a search would be a step back in the browser.
        response.headers["HX-Replace-Url"] = listing.address
    else:
        # The choices take several queries over all agents that the user may see.
        if listing.panel_is_open:
            context["fields"] = filter_fields(listing, known_owners(request.user, Role.VIEWER))
        response = render(request, "agents/list.html", context)
    vary_on_htmx(response)
    return response
