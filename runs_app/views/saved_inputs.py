"""Views that save and delete the inputs of a user in the playground."""

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
from runs_app.views.playground_page import render_as_typed


@require_POST
@login_required
def save_input(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Save the current message under a name, replacing a saved input of this name."""
    agent = get_agent(request, agent_id)
    form = SavedInputForm(request.POST)
    inputs = SavedInput.objects.filter(user=request.user.pk, agent=agent)
    if not form.is_valid():
        errors = " ".join(str(field.errors[0]) for field in form if field.errors)
        return render_result(request, agent, errors, is_error=True)
    name = form.cleaned_data["input_name"]
    if inputs.count() >= MAX_SAVED_INPUTS and not inputs.filter(name=name).exists():
        message = f"You have the maximum of {MAX_SAVED_INPUTS} saved inputs. Remove one first."
        return render_result(request, agent, message, is_error=True)
    user_id = cast(int, request.user.pk)
    _, is_new = SavedInput.objects.update_or_create(
        user_id=user_id, agent=agent, name=name, defaults={"text": form.cleaned_data["message"]}
    )
    return render_result(request, agent, f"Input {name} saved." if is_new else f"Input {name} replaced.")


@require_POST
@login_required
def delete_input(request: HttpRequest, agent_id: str, input_id: int) -> HttpResponse:
    """Delete a saved input of the user. Deleting it twice is no error."""
    agent = get_agent(request, agent_id)
    SavedInput.objects.filter(user=request.user.pk, agent=agent, pk=input_id).delete()
    return render_result(request, agent, "Input removed.")


def render_result(request: HttpRequest, agent: Agent, message: str, *, is_error: bool = False) -> HttpResponse:
    """Render the saved inputs and the message for htmx, or the page with the submitted values."""
    if is_htmx(request):
        inputs = SavedInput.objects.filter(user=request.user.pk, agent=agent)
        response = render(request, "runs/_inputs.html", {"agent": agent, "inputs": inputs})
        detail = {"target": "body", "message": message, **({"kind": "fault"} if is_error else {})}
        return trigger_client_event(response, "inputs-changed", detail)
    (messages.error if is_error else messages.success)(request, message)
    return render_as_typed(request, agent)
