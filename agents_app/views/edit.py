"""The editor: create and edit an agent."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods
from django_htmx.http import trigger_client_event

from access_app.permissions import require_granted_role, require_role
from access_app.role import Role
from agentcms.web.dialogs import is_htmx
from agents_app.configuration import schema
from agents_app.configuration.display import config_sections, unset_labels
from agents_app.configuration.sub_agents import CircularReference
from agents_app.editing.change_context import ChangeValues, change
from agents_app.editing.editor import publish_locked, save_draft_locked
from agents_app.forms.create import CreateForm
from agents_app.forms.edit import AgentEditForm, ExistingAgentForm, find_version_by_id, head_configuration
from agents_app.forms.fields import id_taken_message
from agents_app.models import Agent
from agents_app.models.version_protocol import Version
from agents_app.views.access import GET_POST, can_duplicate, get_agent, has_role_for, lock_agent, owner_choices
from agents_app.views.header import AgentTab, header_context
from agents_app.views.use_examples import use_examples
from versions_app.models import Activation
from versions_app.models.version import get_head_version, get_live_version

NEW_AGENT_CONFIG = {**schema.defaults(), "name": "", "instructions": "", "model": {"provider": "demo", "name": "echo"}}


@login_required
@require_http_methods(GET_POST)
def create(request: HttpRequest) -> HttpResponse:
    owners = owner_choices(request, Role.EDITOR)
    if not owners:
        require_role(request.user, Role.EDITOR, "")
    new = Agent(owner_id=request.POST.get("owner_id", owners[0]))
    form = CreateForm(request.POST or None, base=NEW_AGENT_CONFIG, user=request.user, agent=new, owners=owners)

    if form.is_valid() and (agent := save_new_agent(form)):
        messages.success(request, f"{agent.name} was created, and v1 is live.")
        return redirect("agents:edit", agent.pk)
    return render(request, "agents/create.html", {"form": form, "nav": "agents"}, status=422 if form.is_bound else 200)


def save_new_agent(form: CreateForm) -> Agent | None:
    """Save a new agent. Return None, with the error in the form, if its ID is taken or its sub-agents are circular."""
    agent = Agent(id=form.agent_id, owner_id=form.cleaned_data["owner_id"], **form.configuration())
    try:
        with transaction.atomic(), change(**change_from_form(form)):
            agent.save()
    except CircularReference as refusal:
        form.add_error("agents", refusal.summary)
        return None
    except IntegrityError:
        form.add_error("id", id_taken_message(agent.pk))
        return None
    return agent


@login_required
@require_http_methods(GET_POST)
def edit(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Render or save the editor. Users who may not edit get a read-only page."""
    agent = get_agent(request, agent_id)
    if request.method == "POST":
        require_granted_role(request.user, Role.EDITOR, agent)
        return save_agent(request, agent)
    if agent.archived_at is not None or not has_role_for(request, agent, Role.EDITOR):
        return render_read_only(request, agent)
    return render_editor(request, agent, ExistingAgentForm.for_agent(agent, request.user))


def render_read_only(request: HttpRequest, agent: Agent) -> HttpResponse:
    snapshot = schema.to_wire_dict(head_configuration(agent))
    context = {**header_context(request, agent, AgentTab.EDIT), "may_create": can_duplicate(request, agent)}
    context |= {"parts": config_sections(snapshot, context["warnings"]), "unset": unset_labels(snapshot)}
    context["use_examples"] = use_examples(request, agent)
    return render(request, "agents/read.html", context)


def save_agent(request: HttpRequest, agent: Agent) -> HttpResponse:
    form = ExistingAgentForm.from_request(request.POST, agent, request.user)
    if not form.is_valid():
        return render_editor(request, agent, form, status=422)
    publishes = form.publishes
    try:
        with transaction.atomic(), change(**change_from_form(form)):
            row = lock_agent(request, agent.pk, Role.PUBLISHER if publishes else Role.EDITOR)
            conflict = form.find_conflict(row, publishes=publishes)
            save = publish_locked if publishes else save_draft_locked
            version = None if conflict else save(row, form.changed_fields())
    except CircularReference as refusal:
        form.add_error("agents", refusal.summary)
        return render_editor(request, agent, form, status=422)

    if conflict:
        return render_conflict(request, agent, form, conflict)
    return render_saved(request, get_agent(request, agent.pk), version, form)


def render_conflict(request: HttpRequest, agent: Agent, form: ExistingAgentForm, conflict: str) -> HttpResponse:
    """Render the form with what another user saved ("head") or published ("live") since it was opened."""
    context = {
        "stale": conflict,
        "based_on": find_version_by_id(agent, form.cleaned_data.get("head")),
        "publishes": form.publishes,
        "my_changes": changes_as_text(form.changed_fields()),
    }
    response = render_editor(request, get_agent(request, agent.pk), form, status=409, **context)
    return trigger_client_event(response, "changed-elsewhere", {"target": "body"})


def render_saved(request: HttpRequest, agent: Agent, version: Version | None, form: ExistingAgentForm) -> HttpResponse:
    """Report a save. htmx gets the parts around the fields only, so text typed meanwhile stays."""
    message = save_message(agent, version)
    undo = undo_url(agent, version) if version and version.id == agent.active_version_id else ""
    if not is_htmx(request):
        messages.success(request, message, extra_tags=undo)
        return redirect("agents:edit", agent.pk)
    response = render_editor(
        request, agent, form, opened={"head": agent.head_version_id, "live": agent.active_version_id}
    )
    detail = {"target": "body", "message": message, "base": get_head_version(agent).version_number, "undo": undo}
    trigger_client_event(response, "agent-saved", detail)
    return response


def undo_url(agent: Agent, version: Version) -> str:
    """Return the URL that undoes the publication of this version, or an empty text if nothing was live before."""
    newest = Activation.objects.filter(agent=agent, to_version_id=version.id, from_version_id__isnull=False).first()
    return reverse("versions:undo", args=[agent.pk, newest.pk]) if newest else ""


def save_message(agent: Agent, version: Version | None) -> str:
    if version is None:
        return "No changes"
    if version.id == agent.active_version_id:
        return f"v{version.version_number} is live."
    return f"Draft v{version.version_number} saved. v{get_live_version(agent).version_number} is still live."


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
    response.headers["Vary"] = "HX-Request, Cookie"
    return response


def changes_as_text(fields: dict[str, Any]) -> str:
    """Return the changed fields as text for the clipboard: the instructions as typed, the rest as JSON."""
    texts = [f"{fields[name]}\n" for name in ("instructions",) if name in fields]
    rest = {name: value for name, value in schema.to_wire_dict(fields).items() if name != "instructions"}
    return "\n".join([*texts, json.dumps(rest, indent=2, ensure_ascii=False)] if rest else texts)


def change_from_form(form: AgentEditForm) -> ChangeValues:
    return {"name": form.cleaned_data["version_name"], "message": form.cleaned_data["message"]}
