"""The actions on versions that do not publish: describe, save a named version, delete, duplicate."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from access_app.role import Role
from agentcms.web.dialogs import redirect_page
from agents_app.editing.change_context import change
from agents_app.forms.actions import DuplicateForm, SnapshotForm
from agents_app.models import Agent
from agents_app.views.access import GET_POST, get_agent, lock_agent, reject_replaced, selectable_owners
from agents_app.views.agent_header import AgentTab, render_agent_dialog
from versions_app.forms.history import DescribeForm
from versions_app.models import AgentVersion
from versions_app.views.lookups import confirmation_context, get_version, success_response


@require_http_methods(GET_POST)
@login_required
def delete(request: HttpRequest, agent_id: str, number: int) -> HttpResponse:
    """Delete a version that is not live."""
    if request.method != "POST":
        agent = get_agent(request, agent_id)
        return render_delete_dialog(request, agent, get_version(agent, number))
    with transaction.atomic():
        agent = lock_agent(request, agent_id, Role.PUBLISHER)
        version = get_version(agent, number)
        try:
            version.remove_locked(agent)
        # Inside of the transaction, which goes on: the deletion is refused before anything is written.
        except ValidationError as error:
            return render_delete_dialog(request, agent, version, error.messages[0], 409)
    return success_response(request, agent, f"v{number} deleted.")


def render_delete_dialog(
    request: HttpRequest, agent: Agent, version: AgentVersion, notice: str = "", status: int = 200
) -> HttpResponse:
    number, is_live = version.version_number, version.pk == agent.active_version_id
    return render_agent_dialog(
        request,
        agent,
        AgentTab.HISTORY,
        {
            **confirmation_context(request, agent, version, None, notice, Role.PUBLISHER),
            "title": f"v{number} is live" if is_live else f"Delete v{number}?",
            "body": "versions/_delete.html",
            "buttons": [] if is_live else [{"label": f"Delete v{number}", "kind": "danger"}],
            "is_head": version.pk == agent.head_version_id,
        },
        status,
    )


@require_http_methods(GET_POST)
@login_required
def describe(request: HttpRequest, agent_id: str, number: int) -> HttpResponse:
    """Edit the name, message and pin of a version."""
    if request.method != "POST":
        agent = get_agent(request, agent_id)
        version = get_version(agent, number)
        return render_describe_dialog(request, agent, version, DescribeForm(None, version))
    with transaction.atomic():
        agent = lock_agent(request, agent_id, Role.EDITOR)
        version = get_version(agent, number)
        # Compared under the lock: the form replaces only what its user has seen.
        form = DescribeForm(request.POST, version)
        if not form.is_valid():
            return render_describe_dialog(request, agent, version, form, 422)

        version.update_description_locked(agent, **form.description)

    return success_response(request, agent, f"Name, message and pin of v{number} saved.")


def render_describe_dialog(
    request: HttpRequest, agent: Agent, version: AgentVersion, form: DescribeForm, status: int = 200
) -> HttpResponse:
    context = {
        **confirmation_context(request, agent, version, form, "", Role.EDITOR),
        "title": f"Edit name, message and pin of v{version.version_number}",
        "body": "versions/_describe.html",
        "buttons": [{"label": "Save", "kind": "primary", "save": True}],
    }
    return render_agent_dialog(request, agent, AgentTab.HISTORY, context, status)


@require_http_methods(GET_POST)
@login_required
def snapshot(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Save a copy of the head as a named version. It is not published."""
    if request.method != "POST":
        agent = get_agent(request, agent_id)
        # Pinned by default: who names a version wants to find it later, when others were pruned.
        return render_snapshot_dialog(request, agent, SnapshotForm(initial={"pinned": True}))
    with transaction.atomic():
        agent = lock_agent(request, agent_id, Role.EDITOR)
        form = SnapshotForm(request.POST)
        if not form.is_valid():
            return render_snapshot_dialog(request, agent, form, 422)

        values = form.cleaned_data
        with change(message=values["change_message"], name=values["name"]):
            version = AgentVersion.objects.snapshot_locked(agent, pinned=values["pinned"])

    return success_response(request, agent, f"v{version.version_number} saved.")


def render_snapshot_dialog(request: HttpRequest, agent: Agent, form: SnapshotForm, status: int = 200) -> HttpResponse:
    context = {
        **confirmation_context(request, agent, agent.head_version, form, "", Role.EDITOR),
        "title": "Save named version",
        "body": "versions/_snapshot.html",
        "buttons": [{"label": "Save version", "kind": "primary", "save": True}],
    }
    return render_agent_dialog(request, agent, AgentTab.HISTORY, context, status)


@require_http_methods(GET_POST)
@login_required
def duplicate(request: HttpRequest, agent_id: str, number: int) -> HttpResponse:
    """Create an agent with the configuration of a version."""
    agent = get_agent(request, agent_id)
    # Another agent may have got the ID since the page was opened, and the copy would be of that one.
    reject_replaced(request, agent)
    version = get_version(agent, number)
    owners = selectable_owners(request.user, Role.EDITOR)
    form = DuplicateForm(request.POST or None, agent=agent, version=version, owners=owners)
    if form.is_valid() and (copy := form.save(agent, version)):
        messages.success(request, f"{copy.name} created from v{number} of {agent.name}. v1 is live.")
        return redirect_page(request, reverse("agents:edit", args=[copy.pk]))
    return render_duplicate_dialog(request, agent, version, form, 422 if form.is_bound else 200)


def render_duplicate_dialog(
    request: HttpRequest, agent: Agent, version: AgentVersion, form: DuplicateForm, status: int = 200
) -> HttpResponse:
    context = {
        **confirmation_context(request, agent, version, form, "", Role.VIEWER),
        "title": f"Duplicate v{version.version_number} as new agent",
        "body": "versions/_duplicate.html",
        "buttons": [{"label": "Create agent", "kind": "primary", "save": True}],
        "why_not": "" if form.owners else "Creating an agent needs the Editor role in a team.",
    }
    return render_agent_dialog(request, agent, AgentTab.HISTORY, context, status)
