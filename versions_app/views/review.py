"""Comparisons of unsaved changes in the editor with saved versions."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST

from agentcms.web.dialogs import is_htmx
from agents_app.configuration import schema
from agents_app.forms.edit import ExistingAgentForm, find_version_by_id
from agents_app.models import Agent
from agents_app.views.access import get_agent
from agents_app.views.header import AgentTab, header_context
from versions_app.compare.sections import build_sections, count_changes
from versions_app.models import AgentVersion
from versions_app.views.lookups import get_versions


@require_POST
@login_required
def review(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Compare unsaved changes with live, the head or a version: a dialog for HTMX, else a page."""
    agent = get_agent(request, agent_id)
    against = request.POST.get("against") or "head"
    version, head = get_versions(agent, [against, "head"])
    form = parse_editor_form(request, agent)
    side_by_side, unfolded = request.POST.get("layout") == "sides", request.POST.getlist("unfold")
    unsaved = unsaved_snapshot(head, form)
    differences = build_sections(version.snapshot, unsaved, side_by_side=side_by_side, unfolded=unfolded)

    context = {
        "agent": agent,
        "against": against,
        "version": version,
        "unfold_url": request.path,
        "posted_fields": [] if is_htmx(request) else posted_fields(request),
        "sections": differences,
        "side_by_side": side_by_side,
        "changes": count_changes(differences),
        "invalid_fields": ", ".join(str(field.label) for field in form.fields_with_errors),
    }
    response = render_review(request, agent, context)
    response.headers["Vary"] = "HX-Request, Cookie"
    return response


def render_review(request: HttpRequest, agent: Agent, context: dict[str, Any]) -> HttpResponse:
    if is_htmx(request):
        return render(request, "versions/_review_dialog.html", context)
    return render(request, "versions/review.html", {**header_context(request, agent, AgentTab.EDIT), **context})


@require_POST
@login_required
def conflict(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Render both sides of an edit conflict: changes saved since the editor was opened, and unsaved changes."""
    agent = get_agent(request, agent_id)
    (head,) = get_versions(agent, ["head"])
    form = parse_editor_form(request, agent)
    opened = find_version_by_id(agent, form.cleaned_data.get("head"))
    build = partial(build_sections, side_by_side=False, unfolded=request.POST.getlist("unfold"))
    theirs = build(opened.snapshot, head.snapshot, id_prefix="theirs") if opened else []
    mine = build(head.snapshot, unsaved_snapshot(head, form), id_prefix="mine")
    context = {
        "unfold_url": request.path,
        "opened": opened,
        "head": head,
        "theirs": theirs,
        "mine": mine,
        "both": sorted({section.label for section in theirs} & {section.label for section in mine}),
    }
    return render(request, "versions/_conflict_sides.html", context)


def parse_editor_form(request: HttpRequest, agent: Agent) -> ExistingAgentForm:
    form = ExistingAgentForm.from_request(request.POST, agent, request.user)
    form.is_valid()
    return form


def unsaved_snapshot(head: AgentVersion, form: ExistingAgentForm) -> dict[str, Any]:
    """Return the snapshot that saving the form would create: the head with the changed fields."""
    return {**head.snapshot, **schema.to_wire_dict(form.changed_fields())}


def posted_fields(request: HttpRequest) -> list[tuple[str, str]]:
    """Return the posted fields, so that a page without scripts can post them again to open a fold."""
    fields = {name: values for name, values in request.POST.lists() if name != "csrfmiddlewaretoken"}
    return [(name, str(value)) for name, values in fields.items() for value in values]
