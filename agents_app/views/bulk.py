"""Actions on the agents selected in the list, with a page of results."""

from __future__ import annotations

from functools import partial

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from agentcms.plural import pluralize
from agents_app.editing import bulk
from agents_app.forms.actions import build_removal_form
from agents_app.views.access import selected_agents
from agents_app.views.bulk_results import render_results
from versions_app.models import DeletedAgent

# By name: the verb of the results page.
BULK_ACTIONS = {
    "duplicate": "Duplicated",
    "archive": "Archived",
    "unarchive": "Unarchived",
    "delete": "Deleted",
}


@require_POST
@login_required
def run_action(request: HttpRequest) -> HttpResponse:
    """Run an action on the selected agents and show the results. Archiving and deleting ask for confirmation first."""
    name, ids = request.POST.get("act", ""), request.POST.getlist("agent")
    if name not in BULK_ACTIONS:
        return redirect("agents:list")
    if not ids:
        messages.error(request, bulk.NOTHING_SELECTED_MESSAGE)
        return redirect("agents:list")
    if name in ("archive", "delete"):
        return confirm_and_run(request, name, ids)
    action = bulk.duplicate_agent if name == "duplicate" else bulk.unarchive_agent
    results = bulk.apply_to_each(selected_agents(request), request.user, ids, action)
    return render_results(request, BULK_ACTIONS[name], results)


def confirm_and_run(request: HttpRequest, name: str, ids: list[str]) -> HttpResponse:
    """Ask for confirmation, naming the agents that use the selected ones. Run the action once it is given."""
    confirmed, is_sent = set(request.POST.getlist("confirmed")), "sure" in request.POST
    selection = bulk.describe_selection(request.user, selected_agents(request), ids, confirmed)
    form = build_removal_form(name, request.POST if is_sent else None, selection)
    if not (is_sent and form.is_valid()):
        return render_selection(request, name, selection, form)
    action = partial(bulk.delete_agent if name == "delete" else bulk.archive_agent, confirmed=confirmed)
    results = bulk.apply_to_dependents_first(selected_agents(request), request.user, ids, action)
    # Not strict: IDs over the limit have no result.
    changed = [agent_id for agent_id, result in zip(dict.fromkeys(ids), results, strict=False) if result.done]
    undo_ids = DeletedAgent.objects.newest_ids(request.user, changed) if name == "delete" else changed
    return render_results(request, BULK_ACTIONS[name], results, undo_ids)


def render_selection(request: HttpRequest, name: str, selection: bulk.Selection, form: Form) -> HttpResponse:
    verb = name.capitalize()
    context = {
        "nav": "agents",
        "act": name,
        "back": request.POST.get("back", ""),
        "verb": f"{verb} agents" if selection.used else f"{verb} {pluralize(selection.agent_count, 'agent')}",
        "title": f"{verb} {pluralize(selection.possible_count, 'agent')}?",
        "selection": selection,
        "form": form,
        "trash_days": settings.TRASH_DAYS,
    }
    return render(request, "agents/confirm_selected.html", context, status=422 if form.is_bound else 200)
