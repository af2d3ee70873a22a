"""The inputs that somebody keeps to try an agent with."""

from __future__ import annotations

from typing import cast

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST
from django_htmx.http import trigger_client_event

from agentcms.web.dialogs import is_htmx
from agents_app.models import Agent
from agents_app.views.access import get_agent
from runs_app.forms import MAX_SAVED_INPUTS, SavedInputForm
from runs_app.models import SavedInput
from runs_app.views.try_agent import render_as_typed


@require_POST
@login_required
def save_input(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Keep what is typed under a name; one that is there already says the new text from now on."""
    agent = get_agent(request, agent_id)
    form = SavedInputForm(request.POST)
    kept = SavedInput.objects.filter(user=request.user.pk, agent=agent)
    if not form.is_valid():
        return render_result(
            request, agent, " ".join(str(field.errors[0]) for field in form if field.errors), fault=True
        )
    name = form.cleaned_data["input_name"]
    if kept.count() >= MAX_SAVED_INPUTS and not kept.filter(name=name).exists():
        return render_result(
            request, agent, f"{MAX_SAVED_INPUTS} inputs are kept already. Remove one first.", fault=True
        )
    user_id = cast(int, request.user.pk)
    _, is_new = SavedInput.objects.update_or_create(
        user_id=user_id, agent=agent, name=name, defaults={"text": form.cleaned_data["message"]}
    )
    return render_result(request, agent, f"Kept as {name}." if is_new else f"{name} says the new text now.")


@require_POST
@login_required
def delete_input(request: HttpRequest, agent_id: str, input_id: int) -> HttpResponse:
    """Remove an input of one's own; one that is gone already is no fault."""
    agent = get_agent(request, agent_id)
    SavedInput.objects.filter(user=request.user.pk, agent=agent, pk=input_id).delete()
    return render_result(request, agent, "The input was removed.")


def render_result(request: HttpRequest, agent: Agent, message: str, *, fault: bool = False) -> HttpResponse:
    """What came of it: beside the inputs as they are now, or on the page with all that is typed there."""
    if is_htmx(request):
        inputs = SavedInput.objects.filter(user=request.user.pk, agent=agent)
        response = render(request, "runs/_inputs.html", {"agent": agent, "inputs": inputs})
        detail = {"target": "body", "message": message, **({"kind": "fault"} if fault else {})}
        return trigger_client_event(response, "inputs-changed", detail)
    (messages.error if fault else messages.success)(request, message)
    return render_as_typed(request, agent)
