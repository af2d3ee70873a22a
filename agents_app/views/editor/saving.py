"""Saving in the editor: conflicts with other users, the question before publishing their versions, and the result."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django_htmx.http import reswap, retarget, trigger_client_event

from access_app.role import Role
from agentcms.web.dialogs import is_htmx
from agentcms.web.posted_fields import posted_fields
from agentcms.web.template_context import TemplateContext
from agentcms.wire.json_types import JSONObject
from agents_app.configuration import schema
from agents_app.configuration.sub_agents import dependents_payload
from agents_app.editing.change_context import ChangeValues, change
from agents_app.editing.editor_saves import publish_locked, save_draft_locked
from agents_app.editing.version_refusals import GateNotMet, MoveRefused
from agents_app.forms.editor import AgentEditForm
from agents_app.forms.existing_agent import ExistingAgentForm, find_version_by_id
from agents_app.models import Agent
from agents_app.models.version_protocol import Version
from agents_app.views.access import get_agent, has_role_for, lock_agent
from agents_app.views.agent_header import AgentTab, header_context
from agents_app.views.editor.rendering import render_editor
from agents_app.views.gates import gate_context, unsaved_version
from versions_app.compare.change_summary import summarize_changes
from versions_app.compare.sections import Section, build_sections
from versions_app.history.draft import DraftVersion, find_draft_versions, versions_of_others
from versions_app.history.publish_label import publish_label
from versions_app.models import Activation
from versions_app.models.version import get_head_version, get_live_version

# The question posts these itself.
QUESTION_FIELDS = ("publish", "keep_on", "confirmed", "version_name", "message", "bypass_reason")
NO_REASON_MESSAGE = "Enter a reason, or save a draft and run the experiment on the page Quality."


class SaveOutcome(NamedTuple):
    """The result of a save: the version made, or why nothing was saved."""

    version: Version | None = None
    conflict: str = ""
    others: Sequence[DraftVersion] = ()


def save_agent(request: HttpRequest, agent: Agent) -> HttpResponse:
    """Save the posted form as a draft, or publish it."""
    form = ExistingAgentForm.from_request(request.POST, agent, request.user)
    is_valid = form.is_valid()
    # "Continue editing" on the pages of the review and of the question.
    if request.POST.get("edit") == "again":
        return render_editor(request, agent, form)
    if not is_valid:
        return render_editor(request, agent, form, status=422)
    try:
        outcome = save_form(request, agent, form)
    except MoveRefused as refusal:
        form.add_error(*error_of_refusal(refusal, may_bypass=has_role_for(request, agent, Role.MANAGER)))
        return render_editor(request, agent, form, status=422)
    except schema.ConfigError as error:
        form.add_error(None, error.messages)
        return render_editor(request, agent, form, status=422)

    if outcome.conflict:
        return render_edit_conflict(request, agent, form, outcome.conflict)
    if outcome.others:
        return render_question(request, get_agent(request, agent.pk), form, outcome.others)
    return render_saved(request, get_agent(request, agent.pk), outcome.version, form)


def error_of_refusal(refusal: MoveRefused, *, may_bypass: bool) -> tuple[str | None, str]:
    """Return the field of the form that a refused version is about, or None, and the message with what to do instead.

    Users who may bypass a gate are asked for the missing reason.
    """
    if isinstance(refusal, GateNotMet) and may_bypass:
        return "bypass_reason", NO_REASON_MESSAGE
    if isinstance(refusal, GateNotMet):
        return None, f"{refusal.summary} Save a draft, and run the experiment on the page Quality."
    return "agents", refusal.summary


def save_form(request: HttpRequest, agent: Agent, form: ExistingAgentForm) -> SaveOutcome:
    """Save a valid form, unless it conflicts with another save or publishes versions of others without a question."""
    publishes = form.publishes
    with transaction.atomic(), change(**change_from_form(form)):
        # Locked before the conflicts are looked for, or another save could come in between.
        row = lock_agent(request, agent.pk, Role.PUBLISHER if publishes else Role.EDITOR)
        if conflict := form.find_conflict(row, publishes=publishes):
            return SaveOutcome(conflict=conflict)
        # Before the question, or it would be asked about a merge that cannot be saved.
        fields = form.fields_to_save(row)
        if publishes and not form.is_confirmed:
            others = versions_of_others(find_draft_versions(row), request.user)
            if others:
                return SaveOutcome(others=others)
        save = publish_locked if publishes else save_draft_locked
        return SaveOutcome(save(row, fields))


def render_edit_conflict(request: HttpRequest, agent: Agent, form: ExistingAgentForm, conflict: str) -> HttpResponse:
    """Render the form with what another user saved ("head") or published ("live") since it was opened."""
    agent = get_agent(request, agent.pk)
    context: TemplateContext = {
        "publishes": form.publishes,
        "my_changes": changes_as_text(form.changed_fields()),
    }
    unfold_url = reverse("versions:conflict", args=[agent.pk]) if is_htmx(request) else ""
    context |= conflict_sides(agent, form, conflict, unfold_url=unfold_url)
    context["merge"] = form.merge_with(get_head_version(agent)) if conflict == "head" else None
    response = render_editor(request, agent, form, status=409, **context)
    return trigger_client_event(response, "changed-elsewhere", {"target": "body"})


def conflict_sides(
    agent: Agent, form: ExistingAgentForm, conflict: str, unfolded: Sequence[str] = (), unfold_url: str = ""
) -> TemplateContext:
    """Return the template context of both differences: since the form was opened, and to what saving it would make.

    `conflict` is "head" or "live", the version that changed. Without `unfold_url`, folds stay closed.
    """
    head = get_head_version(agent)
    newest = get_live_version(agent) if conflict == "live" else head
    opened = find_version_by_id(agent, form.cleaned_data.get(conflict))
    # The changes of a draft have the same base on both sides. What is published replaces the live version.
    base = opened if opened and conflict == "head" else newest
    below = base if conflict == "head" else head
    unsaved = schema.to_snapshot(form.changed_fields(), below.snapshot)
    build = partial(build_sections, side_by_side=False, unfolded=unfolded)
    theirs = build(opened.snapshot, newest.snapshot, id_prefix="theirs") if opened else []
    mine = build(base.snapshot, unsaved, id_prefix="mine")
    return {
        "stale": conflict,
        "against": conflict,
        "based_on": opened,
        "newest": newest,
        "base": base,
        "theirs": theirs,
        "mine": mine,
        "both": shared_labels(theirs, mine),
        "unfold_url": unfold_url,
    }


def shared_labels(theirs: Sequence[Section], mine: Sequence[Section]) -> list[str]:
    """Return the labels of the fields that both sides changed."""
    return sorted({section.label for section in theirs} & {section.label for section in mine})


def render_question(
    request: HttpRequest, agent: Agent, form: ExistingAgentForm, others: Sequence[DraftVersion]
) -> HttpResponse:
    """Ask before versions of other users are published: a dialog for htmx, else a page."""
    live, head = get_live_version(agent), get_head_version(agent)
    fields = form.fields_to_save(agent)
    snapshot, is_new = schema.to_snapshot(fields, head.snapshot), agent.has_changes(fields)
    number = agent.last_version_number + 1 if is_new else head.version_number
    context = gate_context(request, agent, unsaved_version(agent, number, snapshot)) | {
        "agent": agent,
        "form": form,
        "live": live,
        "head": head,
        "number": number,
        "is_new": is_new,
        "others": others,
        "keep_on": " ".join(form.accepted_versions[:2]),  # the button of the question says itself that it publishes
        "label": publish_label(number, others),
        "differences": summarize_changes(live.snapshot, snapshot),
        "used_by": dependents_payload(request.user, agent),
    }
    if is_htmx(request):
        return reswap(retarget(render(request, "agents/_publish_dialog.html", context), "#dialogs"), "innerHTML")
    context |= header_context(request, agent, AgentTab.EDIT)
    context["posted_fields"] = posted_fields(request, QUESTION_FIELDS)
    return render(request, "agents/publish.html", context)


def render_saved(request: HttpRequest, agent: Agent, version: Version | None, form: ExistingAgentForm) -> HttpResponse:
    """Report a save. htmx gets the parts around the fields only, so text typed meanwhile stays.

    After a save without changes, fields that show an older head keep it as their base.
    """
    message = save_message(agent, version)
    undo = undo_url_of_save(agent, version) if version and version.id == agent.active_version_id else ""
    if not is_htmx(request):
        messages.success(request, message, extra_tags=undo)
        return redirect("agents:edit", agent.pk)
    detail: JSONObject = {"target": "body"}
    if version is None and not form.pointer_unchanged(agent, "head"):
        response = render_editor(request, agent, form)
    else:
        opened = {"head": agent.head_version_id, "live": agent.active_version_id}
        response = render_editor(request, agent, form, opened=opened)
        detail["base"] = get_head_version(agent).version_number
    # The fields do not show what was saved, so the page is loaded again.
    if form.merges or (version is not None and form.accepts_definitions):
        messages.success(request, message, extra_tags=undo)
        detail |= {"reload": True}
    else:
        detail |= {"message": message, "undo": undo}
    return trigger_client_event(response, "agent-saved", detail)


def undo_url_of_save(agent: Agent, version: Version) -> str:
    """Return the URL that undoes the publication of this version, or an empty text if nothing was live before."""
    newest = Activation.objects.filter(agent=agent, to_version_id=version.id, from_version_id__isnull=False).first()
    return reverse("versions:undo", args=[agent.pk, newest.pk]) if newest else ""


def save_message(agent: Agent, version: Version | None) -> str:
    if version is None:
        return "No changes"
    if version.id == agent.active_version_id:
        return f"v{version.version_number} is live."
    return f"Draft v{version.version_number} saved. v{get_live_version(agent).version_number} is still live."


def changes_as_text(fields: JSONObject) -> str:
    """Return the changed fields as text for the clipboard: the instructions as typed, the rest as JSON."""
    texts = [f"{fields[name]}\n" for name in ("instructions",) if name in fields]
    rest = {name: value for name, value in schema.to_wire_dict(fields).items() if name != "instructions"}
    return "\n".join([*texts, json.dumps(rest, indent=2, ensure_ascii=False)] if rest else texts)


def change_from_form(form: AgentEditForm) -> ChangeValues:
    cleaned = form.cleaned_data
    reason = cleaned.get("bypass_reason", "")  # no gate can refuse a new agent, so there is none to bypass
    return {"name": cleaned["version_name"], "message": cleaned["message"], "bypass_reason": reason}
