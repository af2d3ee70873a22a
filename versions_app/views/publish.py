"""The actions that change live or the draft, each with its confirmation dialog."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_http_methods, require_POST

from access_app.role import Role
from agents_app.configuration.sub_agents import dependents_payload
from agents_app.editing.change_context import change
from agents_app.editing.version_refusals import GateNotMet, MoveRefused
from agents_app.models import Agent
from agents_app.views.access import GET_POST, has_role_for, lock_agent, missing_role_message, with_agent_key
from agents_app.views.agent_header import AgentTab, render_agent_dialog
from agents_app.views.gates import gate_context
from versions_app.compare.change_summary import summarize_changes
from versions_app.forms.history import ActivateForm, DiscardForm, PointersForm, RestoreForm
from versions_app.models import Activation, AgentVersion, CannotUndo
from versions_app.models.version import get_head_version, get_live_version
from versions_app.views.lookups import (
    confirmation_context,
    failure_response,
    get_agent_with_versions,
    get_version,
    history_url,
    success_response,
)

POINTERS_MOVED_MESSAGE = (
    "The live version or the draft changed since you opened this dialog. Nothing was changed. Check the new state."
)
NO_REASON_MESSAGE = "Enter a reason, or run the experiment on the page Quality first."


@require_http_methods(GET_POST)
@login_required
def activate(request: HttpRequest, agent_id: str, number: int) -> HttpResponse:
    """Publish a version, unless live changed since the dialog was opened."""
    if request.method != "POST":
        agent = get_agent_with_versions(request, agent_id)
        return render_activate_dialog(request, agent, get_version(agent, number), ActivateForm(None, agent))
    with transaction.atomic():
        agent = lock_agent(request, agent_id, Role.PUBLISHER)
        version = get_version(agent, number)
        # Compared under the lock: the dialog names the live version and the draft, and either may have moved.
        form = ActivateForm(request.POST, agent)
        if form.is_stale or not form.is_valid():
            return render_dialog_again(request, render_activate_dialog, agent, version, form)

        try:
            with change(message=form.cleaned_data["message"], bypass_reason=form.cleaned_data["bypass_reason"]):
                moved = version.activate_locked(agent)
        # Inside of the transaction, which goes on: a move is refused before anything is written.
        except MoveRefused as error:
            return render_refusal(request, render_activate_dialog, agent, version, form, error)
        undo = undo_newest_url(agent) if moved else ""

    if not moved:
        return success_response(request, agent, f"v{number} is already live.")
    return success_response(request, agent, f"v{number} is live.", undo=undo, activated=True)


def render_activate_dialog(
    request: HttpRequest, agent: Agent, version: AgentVersion, form: ActivateForm, notice: str = "", status: int = 200
) -> HttpResponse:
    live = get_live_version(agent)
    number, is_live = version.version_number, version.pk == live.pk
    gates = gate_context(request, agent, version)
    button = {"label": f"Publish v{number} (replaces v{live.version_number})", "kind": "release"}
    button["why_not"] = gate_reason(gates)
    return render_agent_dialog(
        request,
        agent,
        AgentTab.HISTORY,
        {
            **confirmation_context(request, agent, version, form, notice, Role.PUBLISHER),
            **gates,
            "title": f"v{number} is already live" if is_live else f"Publish v{number}?",
            "body": "versions/_activate.html",
            "buttons": [] if is_live else [button],
            "differences": summarize_changes(live.snapshot, version.snapshot),
            "used_by": dependents_payload(request.user, agent),
            "keeps_draft": agent.has_draft and agent.head_version_id != version.pk,
        },
        status,
    )


@require_http_methods(GET_POST)
@login_required
def restore(request: HttpRequest, agent_id: str, number: int) -> HttpResponse:
    """Restore a version: create a copy of it, published or as a draft."""
    if request.method != "POST":
        agent = get_agent_with_versions(request, agent_id)
        return render_version_restore_dialog(request, agent, get_version(agent, number), RestoreForm(None, agent))
    publish = request.POST.get("publish") == "yes"
    with transaction.atomic():
        agent = lock_agent(request, agent_id, Role.PUBLISHER if publish else Role.EDITOR)
        version = get_version(agent, number)
        form = RestoreForm(request.POST, agent)
        if form.is_stale or not form.is_valid():
            return render_dialog_again(request, render_version_restore_dialog, agent, version, form)

        try:
            # Gates check only what is published, so a draft bypasses none.
            reason = form.cleaned_data["bypass_reason"] if publish else ""
            with change(message=form.cleaned_data["message"], publish=publish, bypass_reason=reason):
                new_number = version.restore_locked(agent).version_number
        except MoveRefused as error:
            return render_refusal(request, render_version_restore_dialog, agent, version, form, error)
        undo = undo_newest_url(agent) if publish else undo_draft_url("take_back", agent, new_number)

    message = f"v{new_number} is {'live' if publish else 'the draft'}, restored from v{number}."
    return success_response(request, agent, message, undo=undo, activated=publish)


def render_version_restore_dialog(
    request: HttpRequest, agent: Agent, version: AgentVersion, form: RestoreForm, notice: str = "", status: int = 200
) -> HttpResponse:
    live = get_live_version(agent)
    is_head, gates = version.pk == agent.head_version_id, gate_context(request, agent, version)
    return render_agent_dialog(
        request,
        agent,
        AgentTab.HISTORY,
        {
            **confirmation_context(request, agent, version, form, notice, Role.EDITOR),
            **gates,
            "title": restore_title(agent, version),
            "body": "versions/_restore.html",
            "buttons": [] if is_head else restore_buttons(request, agent, live.version_number, gates),
            "new_number": agent.last_version_number + 1,
            "differences": summarize_changes(live.snapshot, version.snapshot),
            "used_by": dependents_payload(request.user, agent),
        },
        status,
    )


def restore_title(agent: Agent, version: AgentVersion) -> str:
    number = version.version_number
    if version.pk == agent.head_version_id:
        return f"v{number} is already {'the draft' if agent.has_draft else 'live'}"
    return f"Restore v{number}?"


def gate_reason(gates: Mapping[str, object]) -> str:
    """Return why the button that publishes cannot be pressed: a gate refuses, and the user may not bypass it."""
    return "A release gate is not met." if gates["gate_refusal"] and not gates["may_bypass"] else ""


def restore_buttons(
    request: HttpRequest, agent: Agent, live_number: int, gates: Mapping[str, object]
) -> list[dict[str, str]]:
    reason = missing_role_message(request, agent, Role.PUBLISHER) or gate_reason(gates)
    label = f"Restore and publish (replaces v{live_number})"
    publish = {"label": label, "kind": "release", "name": "publish", "value": "yes", "why_not": reason}
    return [{"label": "Restore as draft", "name": "publish", "value": "no"}, publish]


def render_refusal(
    request: HttpRequest,
    render: Callable[..., HttpResponse],
    agent: Agent,
    version: AgentVersion,
    form: ActivateForm,
    refusal: MoveRefused,
) -> HttpResponse:
    """Render the dialog with why the version may not move. Users who may bypass a gate are asked for the reason."""
    if isinstance(refusal, GateNotMet) and has_role_for(request, agent, Role.MANAGER):
        form.add_error("bypass_reason", NO_REASON_MESSAGE)
        return render(request, agent, version, form, status=422)
    return render(request, agent, version, form, refusal.summary, 409)


def render_dialog_again(
    request: HttpRequest,
    render: Callable[..., HttpResponse],
    agent: Agent,
    version: AgentVersion | None,
    form: PointersForm,
) -> HttpResponse:
    """Render the dialog with the current state and the entered text: the form is stale or invalid."""
    if not form.is_stale:
        return render(request, agent, version, form, status=422)
    # Without the numbers of the versions that the dialog named: the new form takes the present ones.
    entered = {name: value for name, value in form.data.items() if name not in form.current_numbers}
    return render(request, agent, version, type(form)(None, agent, initial=entered), POINTERS_MOVED_MESSAGE, 409)


@require_http_methods(GET_POST)
@login_required
def discard_draft(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Discard the draft: editing continues from live. The versions of the draft stay in the history."""
    if request.method != "POST":
        agent = get_agent_with_versions(request, agent_id)
        return render_discard_dialog(request, agent, None, DiscardForm(None, agent))
    with transaction.atomic():
        agent = lock_agent(request, agent_id, Role.EDITOR)
        form = DiscardForm(request.POST, agent)
        if form.is_stale:
            return render_dialog_again(request, render_discard_dialog, agent, None, form)
        # Before it is discarded: the undo names it.
        draft = get_head_version(agent)

        discarded = AgentVersion.objects.discard_draft_locked(agent)

    if not discarded:
        return success_response(request, agent, "There is no draft to discard.")
    undo = undo_draft_url("bring_back", agent, draft.version_number)
    return success_response(request, agent, f"Draft v{draft.version_number} discarded.", undo=undo)


def render_discard_dialog(
    request: HttpRequest, agent: Agent, version: None, form: DiscardForm, notice: str = "", status: int = 200
) -> HttpResponse:
    live, head = get_live_version(agent), get_head_version(agent)
    button = {"label": f"Discard draft v{head.version_number}", "kind": "danger"}
    return render_agent_dialog(
        request,
        agent,
        AgentTab.HISTORY,
        {
            **confirmation_context(request, agent, head, form, notice, Role.EDITOR),
            "title": "Discard the draft?" if agent.has_draft else "There is no draft",
            "body": "versions/_discard.html",
            "buttons": [button] if agent.has_draft else [],
            "differences": summarize_changes(live.snapshot, head.snapshot),
        },
        status,
    )


@require_POST
@login_required
def bring_back(request: HttpRequest, agent_id: str, number: int) -> HttpResponse:
    """Restore a discarded draft."""
    with transaction.atomic():
        agent = lock_agent(request, agent_id, Role.EDITOR)
        version = get_version(agent, number)
        if agent.has_draft:
            return failure_response(
                request, agent, f"There is already another draft. v{number} remains in the history."
            )

        try:
            with change(publish=False):  # a restored version goes live by default
                restored = version.restore_locked(agent)
        except MoveRefused as error:
            return failure_response(request, agent, error.summary)

    return success_response(request, agent, f"Draft restored as v{restored.version_number}.")


@require_POST
@login_required
def take_back(request: HttpRequest, agent_id: str, number: int) -> HttpResponse:
    """Undo a restore as a draft: editing continues from the version before. The restored one stays in the history."""
    try:
        with transaction.atomic():
            agent = lock_agent(request, agent_id, Role.EDITOR)
            before = get_version(agent, number).take_back_locked(agent)
    except CannotUndo as error:
        return failure_response(request, agent, error.messages[0])
    except MoveRefused as error:
        return failure_response(request, agent, error.summary)
    state = f"v{before.version_number} is the draft again" if agent.has_draft else "There is no draft now"
    return success_response(request, agent, f"{state}. v{number} stays in the history.")


@require_POST
@login_required
def undo(request: HttpRequest, agent_id: str, activation_id: int) -> HttpResponse:
    """Roll back to the version that was live before the newest live history entry."""
    try:
        with transaction.atomic():
            agent = lock_agent(request, agent_id, Role.PUBLISHER)
            activation = get_object_or_404(Activation.objects.filter(agent=agent), pk=activation_id)

            version = activation.undo_locked(agent)
            undo_url = undo_newest_url(agent)
    except CannotUndo as error:
        return failure_response(request, agent, error.messages[0])
    except MoveRefused as error:
        return failure_response(request, agent, error.summary)
    message = f"{activation.undo_summary(version)}."
    if agent.head_version_id == version.pk and activation.to_version_number > version.version_number:
        message += f" v{activation.to_version_number} stays in the history."
    return success_response(request, agent, message, undo=undo_url, activated=True)


def undo_draft_url(name: str, agent: Agent, number: int) -> str:
    """Return the URL that undoes a change of the draft, by the number of a version."""
    return with_agent_key(history_url(name, agent, number), agent)


def undo_newest_url(agent: Agent) -> str:
    """Return the URL that undoes the newest live history entry.

    Call it under the lock of the agent: the next entry may be somebody else's.
    """
    newest = agent.activations.values_list("pk", flat=True).first()
    return history_url("undo", agent, newest)
