"""The trash: deleted agents, which can be restored or deleted for good."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Page, Paginator
from django.db import transaction
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from access_app.permissions import granted_covers, require_granted_role
from access_app.role import Role, RoleRequired
from agentcms.ids import parse_uuid
from agentcms.web.dialogs import redirect_page, render_dialog
from agents_app.configuration.sub_agents import CircularReference
from agents_app.editing.bulk import MAX_SELECTED_AGENTS, NOTHING_SELECTED_MESSAGE, BulkResult
from agents_app.forms.actions import RestoreDeletedForm, TypedForm
from agents_app.models import Agent
from agents_app.views.access import GET_POST
from agents_app.views.bulk_results import render_results
from versions_app import trash
from versions_app.models import DeletedAgent
from versions_app.models.deleted_agent import DeletedAgentQuerySet

DELETED_PER_PAGE = 50


@require_safe
@login_required
def deleted_agents(request: HttpRequest) -> HttpResponse:
    """Render the list of deleted agents."""
    page: Page[Any] = Paginator(visible_deleted_agents(request), DELETED_PER_PAGE).get_page(request.GET.get("page"))
    # As attributes, because a template cannot call a function with arguments.
    for deleted in page.object_list:
        deleted.can_restore = granted_covers(request.user, Role.PUBLISHER, deleted.granted)
        deleted.can_purge = granted_covers(request.user, Role.MANAGER, deleted.granted)
    return render(request, "agents/trash.html", {"nav": "agents", "page": page, "trash_days": settings.TRASH_DAYS})


@require_http_methods(GET_POST)
@login_required
def restore(request: HttpRequest, deleted_id: UUID) -> HttpResponse:
    """Restore an agent, under another ID if its own is taken."""
    deleted = get_object_or_404(visible_deleted_agents(request), pk=deleted_id)
    form = RestoreDeletedForm(request.POST or None, own_id=deleted.agent_key)
    if not form.is_valid():
        # A hint before the first attempt. The restoration itself refuses an ID that is taken.
        if not form.is_bound and Agent.objects.filter(pk=deleted.agent_key).exists():
            form.fields["id"].help_text = f"Another agent has the ID {deleted.agent_key}. Choose another one."
        return render_trash_restore_dialog(request, deleted, form)
    try:
        with transaction.atomic():
            agent = trash.restore_locked(
                lock_deleted_agent(request, deleted_id, Role.PUBLISHER), form.cleaned_data["id"]
            )
    except trash.RestoreRefused as error:
        form.add_error("id", str(error))
        return render_trash_restore_dialog(request, deleted, form)
    except CircularReference as error:
        form.add_error("id", trash.circular_reference_message(error))
        return render_trash_restore_dialog(request, deleted, form)
    messages.success(request, f"{agent.name} was restored.")
    return redirect_page(request, reverse("agents:edit", args=[agent.pk]))


def render_trash_restore_dialog(request: HttpRequest, deleted: DeletedAgent, form: Form) -> HttpResponse:
    button = {"label": "Restore", "kind": "primary"}
    return render_trash_dialog(
        request, deleted, form, f"Restore {deleted.name}?", "agents/_restore_deleted.html", button, Role.PUBLISHER
    )


@require_POST
@login_required
def restore_selected(request: HttpRequest) -> HttpResponse:
    """Restore the selected agents under their own IDs, and show the result of each."""
    ids = [*dict.fromkeys(request.POST.getlist("deleted"))][:MAX_SELECTED_AGENTS]
    if not ids:
        messages.error(request, NOTHING_SELECTED_MESSAGE)
        return redirect("agents:trash")
    return render_results(request, "Restored", [restore_one(request, deleted_id) for deleted_id in ids])


@require_POST
@login_required
def undo_delete(request: HttpRequest, deleted_id: UUID) -> HttpResponse:
    """Restore an agent under its own ID. Show the trash with the reason if it cannot be restored."""
    result = restore_visible(request, get_object_or_404(visible_deleted_agents(request), pk=deleted_id))
    if result.agent_id:
        messages.success(request, f"{result.name} was restored.")
        return redirect_page(request, reverse("agents:edit", args=[result.agent_id]))
    messages.error(request, f"{result.name} was not restored. {result.sentence}")
    return redirect_page(request, reverse("agents:trash"))


def restore_one(request: HttpRequest, deleted_id: str) -> BulkResult:
    """Restore an agent of which only the ID is known. A failure does not affect the others."""
    record_id = parse_uuid(deleted_id)
    deleted = visible_deleted_agents(request).filter(pk=record_id).first() if record_id is not None else None
    if deleted is None:
        return BulkResult("An agent", False, "It is no longer in the trash.")
    return restore_visible(request, deleted)


def restore_visible(request: HttpRequest, deleted: DeletedAgent) -> BulkResult:
    """Restore an agent that the user may see, in a transaction of its own."""
    try:
        # The lock comes first: of two users who restore an agent at once, the second one gets the 404 below.
        with transaction.atomic():
            agent = trash.restore_locked(lock_deleted_agent(request, deleted.pk, Role.PUBLISHER))
    except Http404:  # somebody restored or purged it since the query above
        return BulkResult(deleted.name, False, "It is no longer in the trash.")
    except (RoleRequired, trash.RestoreRefused) as error:
        return BulkResult(deleted.name, False, str(error))
    except CircularReference as error:
        return BulkResult(deleted.name, False, f"{error.summary} Restore it alone, under another ID.")
    return BulkResult(agent.name, True, "Restored with all versions.", agent.pk)


@require_http_methods(GET_POST)
@login_required
def purge(request: HttpRequest, deleted_id: UUID) -> HttpResponse:
    """Delete an agent for good, after the user typed its name."""
    deleted = get_object_or_404(visible_deleted_agents(request), pk=deleted_id)
    form = TypedForm(request.POST or None, expected=deleted.name)
    if not form.is_valid():
        button = {"label": "Delete for good", "kind": "danger"}
        return render_trash_dialog(
            request, deleted, form, f"Delete {deleted.name} for good?", "agents/_purge.html", button, Role.MANAGER
        )
    with transaction.atomic():
        trash.purge_locked(lock_deleted_agent(request, deleted_id, Role.MANAGER))
    messages.success(request, f"{deleted.name} was deleted for good.")
    return redirect_page(request, reverse("agents:trash"))


def visible_deleted_agents(request: HttpRequest) -> DeletedAgentQuerySet:
    """Return the deleted agents that the user may see, with the role granted by the owner of each."""
    return DeletedAgent.objects.for_user(request.user).with_role(request.user)


def lock_deleted_agent(request: HttpRequest, deleted_id: UUID, role: Role) -> DeletedAgent:
    """Lock a deleted agent inside a transaction. Raise Http404 if it was restored or removed, and RoleRequired."""
    deleted = visible_deleted_agents(request).select_for_update(of=("self",)).filter(pk=deleted_id).first()
    if deleted is None:
        raise Http404
    require_granted_role(request.user, role, deleted)
    return deleted


def render_trash_dialog(
    request: HttpRequest, deleted: DeletedAgent, form: Form, title: str, body: str, button: dict[str, str], role: Role
) -> HttpResponse:
    """Render the dialog of an action on a deleted agent, with the reason if the user lacks the role."""
    allowed = granted_covers(request.user, role, deleted.granted)
    context = {
        "deleted": deleted,
        "back": reverse("agents:trash"),
        "form": form,
        "title": title,
        "body": body,
        "buttons": [button],
        "why_not": "" if allowed else str(RoleRequired(role, deleted.owner_id)),
    }
    return render_dialog(request, context, 422 if form.is_bound else 200)
