"""Actions on a whole agent: archive it, delete it, change its owner, report who has it open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST
from django_htmx.http import trigger_client_event

from access_app.permissions import has_role_everywhere, require_granted_role, require_role
from access_app.role import SHARED_LABEL, Role
from access_app.teams import can_be_offered
from agentcms.ids import parse_uuid
from agentcms.web.dialogs import is_htmx, redirect_page
from agents_app.configuration.schema import ConfigError
from agents_app.configuration.sub_agents import dependents_payload
from agents_app.editing.archiving import archive_locked, unarchive_locked
from agents_app.editing.presence import RENEWAL_INTERVAL, renew_presence
from agents_app.forms.actions import ArchiveForm, ChangeOwnerForm, DeleteForm
from agents_app.models import Agent
from agents_app.views.access import (
    GET_POST,
    get_agent,
    lock_agent,
    missing_role_message,
    reject_replaced,
    selectable_owners,
    with_agent_key,
)
from agents_app.views.agent_header import AgentTab, render_agent_dialog
from versions_app.models import DeletedAgent


@require_http_methods(GET_POST)
@login_required
def delete(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Move an agent to the trash, after the user typed its name and confirmed that others lose it."""
    agent = get_agent(request, agent_id)
    used_by = dependents_payload(request.user, agent)
    form = DeleteForm(request.POST or None, name=agent.name, is_used=bool(used_by["total"]))
    if not form.is_valid():
        button = {"label": f"Delete {agent.name}", "kind": "danger"}
        context = {
            "used_by": used_by,
            "version_count": agent.versions.count(),
            "trash_days": settings.TRASH_DAYS,
        }
        return render_confirmation(
            request, agent, form, f"Delete {agent.name}?", "agents/_delete.html", button, **context
        )
    with transaction.atomic():
        lock_agent(request, agent_id, Role.PUBLISHER).delete()

    deleted = DeletedAgent.objects.newest_ids(request.user, [agent_id])
    undo = reverse("agents:undo_delete", args=[deleted[0]]) if deleted else ""
    # The tags of a message are the URL of its Undo button.
    messages.success(request, f"{agent.name} was moved to the trash.", extra_tags=undo)
    return redirect_page(request, reverse("agents:list"))


@require_http_methods(GET_POST)
@login_required
def archive(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Archive an agent, after the user confirmed that others lose it."""
    agent = get_agent(request, agent_id)
    used_by = dependents_payload(request.user, agent)
    # Not `request.POST or None`: a form without fields may post nothing.
    form = ArchiveForm(request.POST if request.method == "POST" else None, is_used=bool(used_by["total"]))
    if not form.is_valid():
        button = {"label": f"Archive {agent.name}", "kind": "primary"}
        return render_confirmation(
            request, agent, form, f"Archive {agent.name}?", "agents/_archive.html", button, used_by=used_by
        )
    with transaction.atomic():
        archive_locked(lock_agent(request, agent_id, Role.PUBLISHER))

    undo = with_agent_key(reverse("agents:unarchive", args=[agent.pk]), agent)
    messages.success(request, f"{agent.name} was archived.", extra_tags=undo)
    return redirect_page(request, reverse("agents:edit", args=[agent.pk]))


@require_POST
@login_required
def unarchive(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Unarchive an agent."""
    with transaction.atomic():
        agent = lock_agent(request, agent_id, Role.PUBLISHER)
        unarchive_locked(agent)
    messages.success(request, f"{agent.name} was unarchived.")
    return redirect_page(request, reverse("agents:edit", args=[agent.pk]))


@require_http_methods(GET_POST)
@login_required
def change_owner(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Move an agent with its history to another owner."""
    agent = get_agent(request, agent_id)
    if request.method == "POST":
        require_granted_role(request.user, Role.PUBLISHER, agent)
    owners = selectable_owners(request.user, Role.PUBLISHER)
    any_owner = has_role_everywhere(request.user, Role.PUBLISHER)
    form = ChangeOwnerForm(request.POST or None, user=request.user, agent=agent, owners=owners, any_owner=any_owner)
    if not (request.method == "POST" and form.is_valid() and save_owner(request, agent, form)):
        button, title = {"label": "Change owner", "kind": "primary"}, f"Change owner of {agent.name}"
        suggested = owners if can_be_offered(owners) else []
        return render_confirmation(request, agent, form, title, "agents/_change_owner.html", button, owners=suggested)
    message = describe_owner(form.cleaned_data["owner_id"], owners)
    if not is_htmx(request):
        messages.success(request, message)
        return redirect("agents:edit", agent.pk)
    # The editor reloads itself by the event, and offers unsaved text again.
    response = HttpResponse(status=204)
    return trigger_client_event(response, "agent-owner-changed", {"target": "body", "message": message})


def describe_owner(owner_id: str, known: Sequence[str]) -> str:
    """Return what an agent belongs to now. A superuser may have misspelled a team, which nobody else would notice."""
    message = f"Current owner: {owner_id or SHARED_LABEL}."
    return message if owner_id in known else f"{message} This team has no members, so only superusers see the agent."


def save_owner(request: HttpRequest, agent: Agent, form: ChangeOwnerForm) -> bool:
    """Give an agent to the owner of a valid form. Return False, with the error in the form, if that fails."""
    owner_id = form.cleaned_data["owner_id"]
    require_role(request.user, Role.PUBLISHER, owner_id)
    try:
        with transaction.atomic():
            lock_agent(request, agent.pk, Role.PUBLISHER).change_owner(owner_id)
    except ConfigError as error:  # an earlier release, or a fixture, stored what is not valid now
        problem = " ".join(error.messages)
        form.add_error(None, f"The configuration of the agent is not valid: {problem} Correct it in the editor first.")
        return False
    return True


def render_confirmation(
    request: HttpRequest, agent: Agent, form: Form, title: str, body: str, button: dict[str, str], **extra: Any
) -> HttpResponse:
    """Render the dialog of an action with its form, and its errors if the form was sent.

    Raise AgentReplaced if it was sent for another agent.
    """
    # Rendered with its errors, the form would have the key of this agent, and would be accepted when sent again.
    reject_replaced(request, agent)
    context = {
        "agent": agent,
        "back": reverse("agents:edit", args=[agent.pk]),
        "form": form,
        "title": title,
        "body": body,
        "buttons": [button],
        "why_not": missing_role_message(request, agent, Role.PUBLISHER),
        **extra,
    }
    return render_agent_dialog(request, agent, AgentTab.EDIT, context, 422 if form.is_bound else 200)


@require_POST
@login_required
def presence(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Render who else has the agent open, and whether it has a newer head than the page."""
    agent = get_agent(request, agent_id)
    others = renew_presence(agent.row_key, request.user)
    opened = request.POST.get("head", "")
    is_outdated = bool(opened) and opened != str(agent.head_version_id)
    context = {
        "agent": agent,
        "others": others,
        "beat": RENEWAL_INTERVAL,
        "is_outdated": is_outdated,
        "opened_number": find_version_number(agent, opened) if is_outdated else None,
    }
    return render(request, "agents/_presence.html", context)


def find_version_number(agent: Agent, text: str) -> int | None:
    """Return the number of the version with an ID, or None if it was deleted or the text is no ID."""
    version_id = parse_uuid(text)
    if version_id is None:
        return None
    return agent.versions.filter(pk=version_id).values_list("version_number", flat=True).first()
