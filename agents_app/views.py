"""The list of agents."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from access_app.roles import Role, may_anything
from access_app.teams import known_owners
from agents_app.listing import Listing
from agents_app.pages import visible


@require_safe
@login_required
def list(request: HttpRequest) -> HttpResponse:
    listing = Listing(visible(request), request.GET)
    owners = known_owners(request.user, Role.VIEWER)
    context = {
        "nav": "agents",
        "listing": listing,
        "offers": [*listing.offers(owners)],
        "may_create": may_anything(request.user, Role.EDITOR),
    }
    return render(request, "agents/list.html", context)
