"""Actions on the agents selected in the list, with a page of results."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from agents_app.editing import bulk
from agents_app.models import Agent
from agents_app.views.access import visible_agents

BULK_ACTIONS = {"duplicate": bulk.duplicate_agent, "delete": bulk.delete_agent}


@require_POST
@login_required
def run_action(request: HttpRequest) -> HttpResponse:
    """Run an action on the selected agents and show the results. A deletion asks for confirmation first."""
    name, ids = request.POST.get("act", ""), request.POST.getlist("agent")
    context: dict[str, Any] = {"nav": "agents", "act": name, "back": request.POST.get("back", "")}
    if name not in BULK_ACTIONS or not ids:
        return redirect("agents:list")
    if name == "delete" and "sure" not in request.POST:
        agents = (
            visible_agents(request).filter(pk__in=ids[: bulk.MAX_AGENTS]).order_by("name", "pk").only("pk", "name")
        )
        return render(request, "agents/delete_selected.html", {**context, "agents": agents})

    results = bulk.apply_to_each(Agent.objects.for_user(request.user), request.user, ids, BULK_ACTIONS[name])

    failed = sum(not result.done for result in results)
    context |= {"results": results, "failed": failed, "done": len(results) - failed}
    return render(request, "agents/selected.html", context)
