"""The editor: create and edit an agent."""

from __future__ import annotations

from collections.abc import Mapping

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from access_app.permissions import require_granted_role
from access_app.role import Role, RoleRequired
from agents_app.configuration import schema
from agents_app.configuration.display import config_sections, unset_labels
from agents_app.editing.change_context import change
from agents_app.editing.version_refusals import MoveRefused
from agents_app.forms.create import NEW_AGENT_CONFIG, CreateForm
from agents_app.forms.existing_agent import ExistingAgentForm, head_configuration
from agents_app.forms.fields import id_taken_message
from agents_app.models import Agent
from agents_app.views.access import (
    GET_POST,
    can_duplicate,
    get_agent,
    has_role_for,
    posted_owner,
    selectable_owners,
    sub_agent_names,
)
from agents_app.views.agent_header import AgentTab, header_context
from agents_app.views.editor.rendering import render_editor
from agents_app.views.editor.saving import change_from_form, save_agent
from agents_app.views.use_examples import use_examples
from runs_app.providers.cached_providers import get_table


@login_required
@require_http_methods(GET_POST)
def create(request: HttpRequest) -> HttpResponse:
    owners = selectable_owners(request.user, Role.EDITOR)
    if not owners:
        raise RoleRequired(Role.EDITOR, None)
    # Not saved: the pickers of the form offer what this team may use.
    new = Agent(owner_id=posted_owner(request, owners))
    form = CreateForm(request.POST or None, base=NEW_AGENT_CONFIG, user=request.user, agent=new, owners=owners)

    if form.is_valid() and (agent := save_new_agent(form)):
        messages.success(request, created_message(agent))
        return redirect("agents:edit", agent.pk)
    problems = model_problems()
    remarks = create_remarks(form["instructions"].value() or "", form["provider"].value() or "", problems)
    context = {"form": form, "nav": "agents", "remarks": remarks, "model_problems": problems}
    return render(request, "agents/create.html", context, status=422 if form.is_bound else 200)


def model_problems() -> dict[str, str]:
    """Return why no model of a provider answers, by its key or alias, blank if one does."""
    return {name: provider.no_answer_reason for provider in get_table() for name in (provider.key, *provider.aliases)}


def create_remarks(instructions: str, provider: str, problems: Mapping[str, str]) -> dict[str, str]:
    """Return what limits an agent with these instructions and this model provider, by field."""
    model = problems.get(provider, f'Unknown model provider "{provider}".') if provider else ""
    return {"instructions": "" if instructions.strip() else "The instructions are empty.", "model": model}


def created_message(agent: Agent) -> str:
    remarks = create_remarks(agent.instructions, agent.model["provider"], model_problems())
    if remarks["model"]:
        remarks["model"] = f"It cannot answer: {remarks['model']}"
    return " ".join([f"{agent.name} was created, and v1 is live.", *filter(None, remarks.values())])


def save_new_agent(form: CreateForm) -> Agent | None:
    """Save a new agent. Return None, with the error in the form, if its ID is taken or its sub-agents are circular."""
    agent = Agent(id=form.agent_id, owner_id=form.cleaned_data["owner_id"], **form.configuration())
    try:
        with transaction.atomic(), change(**change_from_form(form)):
            agent.save()
    except MoveRefused as refusal:
        form.add_error("agents", refusal.summary)
        return None
    # Somebody took the ID since the form was validated.
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
    names = sub_agent_names(request, snapshot)
    context["parts"] = config_sections(snapshot, context["missing_references"], names)
    context["unset"] = unset_labels(snapshot)
    context["use_examples"] = use_examples(request, agent)
    return render(request, "agents/read.html", context)
