"""Comparisons of unsaved changes in the editor with saved versions."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST
from django_htmx.http import reswap, retarget

from access_app.role import Role
from agentcms.web.dialogs import is_htmx, vary_on_htmx
from agentcms.web.posted_fields import posted_fields
from agentcms.web.template_context import TemplateContext
from agents_app.configuration.schema import to_snapshot
from agents_app.forms.existing_agent import ExistingAgentForm
from agents_app.models import Agent
from agents_app.views.access import get_agent, has_role_for, role_requirement
from agents_app.views.agent_header import AgentTab, header_context
from agents_app.views.editor.rendering import render_editor
from agents_app.views.editor.saving import conflict_sides
from agents_app.views.gates import gate_context, unsaved_version
from versions_app.compare.merge import Merge
from versions_app.compare.sections import build_sections, count_changes
from versions_app.history.draft import find_draft_versions, versions_of_others
from versions_app.history.publish_label import publish_label
from versions_app.models.version import get_head_version
from versions_app.views.lookups import get_versions
from versions_app.views.unsaved import parse_editor_form, unsaved_snapshot

# The page of a review has its own fields and buttons with these names.
FIELDS_OF_THE_REVIEW = ("publish", "keep_on", "merge", "confirmed", "edit", "version_name", "message", "bypass_reason")


@require_POST
@login_required
def review(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Compare unsaved changes with live, the head or a version, and offer to save them: a dialog or a page."""
    agent = get_agent(request, agent_id)
    form = parse_editor_form(request, agent)
    # The editor is open behind the dialog, and shows the errors at its fields.
    if form.errors and is_htmx(request):
        return reswap(retarget(render_editor(request, agent, form, status=422), "#notices"), "outerHTML")
    response = render_review(request, agent, review_context(request, agent, form))
    vary_on_htmx(response)
    return response


def review_context(request: HttpRequest, agent: Agent, form: ExistingAgentForm) -> TemplateContext:
    """Return the template context of the comparison, and of what saves it."""
    has_changes = bool(form.changed_fields())
    # Without unsaved changes, the question is what publishing the draft would change.
    against = request.POST.get("against") or ("head" if has_changes or not agent.has_draft else "live")
    version, head = get_versions(agent, [against, "head"])
    merge = form.merge_with(head) if form.merges else None
    # As it would be stored, because gates know versions by their hash: a merge has null for what is not set.
    unsaved = to_snapshot({}, merge.snapshot) if merge else unsaved_snapshot(head, form)
    side_by_side, unfolded = request.POST.get("layout") == "sides", request.POST.getlist("unfold")
    differences = build_sections(version.snapshot, unsaved, side_by_side=side_by_side, unfolded=unfolded)
    return {
        "agent": agent,
        **save_context(request, agent, form, merge),
        **gate_context(request, agent, unsaved_version(agent, next_number(agent, form), unsaved)),
        "against": against,
        "version": version,
        "has_changes": has_changes,
        "unfold_url": request.path,
        "sections": differences,
        "side_by_side": side_by_side,
        "changes": count_changes(differences),
        "invalid_fields": ", ".join(str(field.label) for field in form.fields_with_errors),
    }


def render_review(request: HttpRequest, agent: Agent, context: TemplateContext) -> HttpResponse:
    if is_htmx(request):
        return render(request, "versions/_review_dialog.html", context)
    fields = {"posted_form": "agent-form", "posted_fields": posted_fields(request, FIELDS_OF_THE_REVIEW)}
    header = header_context(request, agent, AgentTab.EDIT)
    return render(request, "versions/review.html", {**header, **context, **fields})


def save_context(request: HttpRequest, agent: Agent, form: ExistingAgentForm, merge: Merge | None) -> TemplateContext:
    """Return the template context of the fields and buttons by which a review saves."""
    has_changes = bool(form.changed_fields())
    draft = find_draft_versions(agent)
    touching = ", ".join(merge.touching_labels) if merge else ""
    may_edit = has_role_for(request, agent, Role.EDITOR) and agent.archived_at is None
    may_publish = has_role_for(request, agent, Role.PUBLISHER)
    return {
        "form": form,
        "merge": merge,
        "touching": touching,
        "keep_on": f"{agent.head_version_id} {agent.active_version_id}" if merge else "",
        "included": draft,
        "may_save": may_edit and not form.errors and not touching,
        "can_save": has_changes,
        "can_publish": has_changes or agent.has_draft,
        "why_not": "" if may_publish else f"Publishing {role_requirement(agent, Role.PUBLISHER)}",
        "publish_label": publish_label(next_number(agent, form), versions_of_others(draft, request.user)),
    }


def next_number(agent: Agent, form: ExistingAgentForm) -> int:
    """Return the number of the version that publishing the form makes live: a new one, or the draft."""
    return agent.last_version_number + 1 if form.changed_fields() else get_head_version(agent).version_number


@require_POST
@login_required
def conflict(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Render both sides of an edit conflict: changes saved since the editor was opened, and unsaved changes."""
    agent = get_agent(request, agent_id)
    form = parse_editor_form(request, agent)
    changed = "live" if request.POST.get("against") == "live" else "head"
    context = conflict_sides(agent, form, changed, request.POST.getlist("unfold"), request.path)
    return render(request, "versions/_conflict_sides.html", context)
