"""Views that save and delete the inputs of a user in the playground."""

from __future__ import annotations

from typing import cast

from django.contrib import messages
from django.contrib.auth import get_user_model
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.text import Truncator
from django.views.decorators.http import require_POST
from django_htmx.http import trigger_client_event

from agentcms.ids import parse_uuid
from agentcms.web.dialogs import is_htmx
from agentcms.wire.json_types import JSONObject
from agents_app.configuration.schema import ConfigError
from agents_app.models import Agent
from agents_app.views.access import get_agent
from runs_app.display.answer import RunView
from runs_app.forms.playground import MAX_SAVED_INPUTS, SavedInputForm
from runs_app.models import AgentRun, SavedInput
from runs_app.requests.request_context import parse_request_context
from runs_app.views.lookups import readable_runs
from runs_app.views.playground.rendering import render_as_typed
from runs_app.views.playground.variables import submitted_texts, texts_of_values

NAME_LENGTH = 60  # of an input that is saved without a name


@require_POST
@login_required
def save_input(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Save the current message under a name, replacing a saved input of this name."""
    agent = get_agent(request, agent_id)
    data, variables = input_to_save(request, agent)
    try:
        # A run would refuse such values.
        parse_request_context({"variables": variables})
    except ConfigError as error:
        return render_saved_inputs(request, agent, f"Variables: {error.issues[0].message}", is_error=True)
    form = SavedInputForm(data)
    if not form.is_valid():
        errors = " ".join(str(field.errors[0]) for field in form if field.errors)
        return render_saved_inputs(request, agent, errors, is_error=True)
    name = form.cleaned_data["input_name"]
    is_new = store_input(request, agent, name, {"text": form.cleaned_data["message"], "variables": variables})
    if is_new is None:
        message = f"You have the maximum of {MAX_SAVED_INPUTS} saved inputs. Remove one first."
        return render_saved_inputs(request, agent, message, is_error=True)
    return render_saved_inputs(request, agent, f"Input {name} saved." if is_new else f"Input {name} replaced.")


@transaction.atomic
def store_input(request: HttpRequest, agent: Agent, name: str, values: JSONObject) -> bool | None:
    """Save an input of the user, or replace that of its name. Return whether it is new, or None beyond the limit."""
    user_id = cast(int, request.user.pk)
    # Requests at the same time would count the same inputs.
    get_user_model().objects.select_for_update(no_key=True).filter(pk__in=[user_id]).exists()
    inputs = SavedInput.objects.filter(user=user_id, agent=agent)
    if inputs.count() >= MAX_SAVED_INPUTS and not inputs.filter(name=name).exists():
        return None
    return SavedInput.objects.update_or_create(user_id=user_id, agent=agent, name=name, defaults=values)[1]


def input_to_save(request: HttpRequest, agent: Agent) -> tuple[dict[str, str], dict[str, str]]:
    """Return the name and the message to save, and the texts of the variables.

    They are those of the form, or of a run whose question was chosen (`asked`). Without a name, such a question is
    saved under its beginning.
    """
    name = request.POST.get("input_name", "")
    run = find_asked_run(request, agent)
    if run is None:
        return {"input_name": name, "message": request.POST.get("message", "")}, submitted_texts(request.POST)
    question = RunView(run).question
    data = {"input_name": name.strip() or new_name(request, agent, question), "message": question}
    return data, texts_of_values(run.request_context)


def find_asked_run(request: HttpRequest, agent: Agent) -> AgentRun | None:
    """Return the run whose question is to be saved: the chosen one, or the last one if the message is empty."""
    run_ids = [request.POST.get("asked", "")]
    if not request.POST.get("message", "").strip():
        run_ids += request.POST.getlist("run")
    run_id = next((run_id for run_id in run_ids if parse_uuid(run_id)), None)
    return readable_runs(request).filter(agent=agent, pk=run_id).first() if run_id else None


def new_name(request: HttpRequest, agent: Agent, question: str) -> str:
    """Return the beginning of a question, with a number if another saved input of the user has this name."""
    beginning = Truncator(" ".join(question.split())).chars(NAME_LENGTH)
    inputs = SavedInput.objects.filter(user=request.user.pk, agent=agent).exclude(text=question)
    taken = {*inputs.filter(name__startswith=beginning).values_list("name", flat=True)}
    names = (beginning, *(f"{beginning} ({number})" for number in range(2, len(taken) + 2)))
    return next(name for name in names if name not in taken)


@require_POST
@login_required
def delete_input(request: HttpRequest, agent_id: str, input_id: int) -> HttpResponse:
    """Delete a saved input of the user. Deleting it twice is not an error."""
    agent = get_agent(request, agent_id)
    SavedInput.objects.filter(user=request.user.pk, agent=agent, pk=input_id).delete()
    return render_saved_inputs(request, agent, "Input removed.")


def render_saved_inputs(request: HttpRequest, agent: Agent, message: str, *, is_error: bool = False) -> HttpResponse:
    """Render the saved inputs and the message for htmx, or the page with the submitted values."""
    if is_htmx(request):
        inputs = SavedInput.objects.filter(user=request.user.pk, agent=agent)
        response = render(request, "runs/_inputs.html", {"agent": agent, "inputs": inputs})
        detail = {"target": "body", "message": message, **({"kind": "fault"} if is_error else {})}
        return trigger_client_event(response, "inputs-changed", detail)
    (messages.error if is_error else messages.success)(request, message)
    return render_as_typed(request, agent)
