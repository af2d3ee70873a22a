"""Pages of release gates: add, change, delete, and the experiment that a gate waits for."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from access_app.permissions import require_granted_role
from access_app.role import Role
from agentcms.errors import ApiError
from agentcms.web.dialogs import redirect_page
from agentcms.web.post_transactions import atomic_post
from agentcms.web.template_context import TemplateContext
from agentcms.wire.json_types import JSONObject
from agents_app.models import Agent
from agents_app.views.access import GET_POST, get_agent, lock_agent
from agents_app.views.agent_header import AgentTab, header_context, render_agent_dialog
from evals_app.experiments.creation import create_experiment
from evals_app.experiments.options import parse_experiment
from evals_app.experiments.targets import reject_without_model
from evals_app.forms.gates import GateForm
from evals_app.gates.checking import check_gates, describe_need, gates_for, tested_dataset_version
from evals_app.gates.schema import usable_datasets
from evals_app.models import Dataset, Experiment, ReleaseGate
from evals_app.views.lookups import get_page_dataset
from versions_app.models import AgentVersion
from versions_app.models.version import get_head_version, get_live_version


def get_managed_agent(request: HttpRequest, agent_id: str) -> Agent:
    """Return an agent, locked for a form that was sent, inside a transaction.

    Raise Http404 if the user may not see it, and RoleRequired for all but managers.
    """
    if request.method == "POST":
        # Otherwise an agent that moves to another team meanwhile would get gates of managers of its former team.
        lock_agent(request, agent_id, Role.MANAGER)
    agent = get_agent(request, agent_id)
    require_granted_role(request.user, Role.MANAGER, agent)
    return agent


@require_http_methods(GET_POST)
@login_required
@atomic_post
def add_gate(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Add a gate to an agent."""
    agent = get_managed_agent(request, agent_id)
    gate = ReleaseGate(agent=agent, owner_id=agent.owner_id, created_by_id=request.user.pk)
    return edit_gate(request, agent, gate)


@require_http_methods(GET_POST)
@login_required
@atomic_post
def change_gate(request: HttpRequest, agent_id: str, gate_id: UUID) -> HttpResponse:
    """Change a gate, such as to a lower bar."""
    agent = get_managed_agent(request, agent_id)
    gates = gates_for(agent)
    if request.method == "POST":
        gates = gates.select_for_update(of=("self",))  # or one that is deleted meanwhile would come back
    gate = get_object_or_404(gates, pk=gate_id)
    gate.updated_at = timezone.now()
    return edit_gate(request, agent, gate)


def edit_gate(request: HttpRequest, agent: Agent, gate: ReleaseGate) -> HttpResponse:
    usable = usable_datasets(Dataset.objects.for_user(request.user), agent.owner_id, gate.dataset_id)
    # That of the gate too if it is archived: without it, a browser selects another one.
    datasets = usable.filter(Q(archived_at=None) | Q(pk=gate.dataset_id))
    form = GateForm(request.POST or None, gate, agent, datasets)
    if form.is_valid():
        form.save()
        messages.success(request, "The release gate was saved.")
        return redirect("evals:quality", agent.pk)
    context: TemplateContext = header_context(request, agent, AgentTab.QUALITY)
    context |= {"form": form, "gate": gate, "has_datasets": datasets.exists()}
    return render(request, "evals/gate.html", context, status=422 if form.errors else 200)


@require_http_methods(GET_POST)
@login_required
@atomic_post
def delete_gate(request: HttpRequest, agent_id: str, gate_id: UUID) -> HttpResponse:
    """Delete a gate after a question."""
    agent = get_managed_agent(request, agent_id)
    gate = get_object_or_404(gates_for(agent), pk=gate_id)
    if request.method == "POST":
        gate.delete()
        messages.success(request, "The release gate was deleted.")
        return redirect_page(request, reverse("evals:quality", args=[agent.pk]))
    context = {
        "title": "Delete the release gate?",
        "body": "evals/_delete_gate.html",
        "need": describe_need(gate, agent.owner_id),
        "for_team": gate.agent_id is None,
        "buttons": [{"label": "Delete the gate", "kind": "danger"}],
    }
    return render_agent_dialog(request, agent, AgentTab.QUALITY, context)


@require_POST
@login_required
def run_gate(request: HttpRequest, agent_id: str, gate_id: UUID) -> HttpResponse:
    """Start the experiment that a gate waits for, or show the one that runs already.

    It has the scorers of all gates over the same dataset. A gate that compares with the live version may wait for an
    experiment of that one.
    """
    agent = get_agent(request, agent_id)
    gates = gates_for(agent)
    gate = get_object_or_404(gates, pk=gate_id)
    dataset = get_page_dataset(request, gate.dataset_id, Role.EDITOR)
    # One experiment serves them all. Otherwise all items would run again for each gate.
    same = gates.filter(dataset=gate.dataset_id, dataset_version=gate.dataset_version)
    try:
        experiment = find_or_start_experiment(request, agent, dataset, same, gate)
    except ApiError as error:
        messages.error(request, error.sentence)
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))
    else:
        return redirect("evals:experiment", experiment.pk)
    return redirect("evals:quality", agent.pk)


@transaction.atomic
def find_or_start_experiment(
    request: HttpRequest, agent: Agent, dataset: Dataset, same: QuerySet[ReleaseGate], gate: ReleaseGate
) -> Experiment:
    """Return the unfinished experiment that serves a gate, or start it.

    Raise Http404 if the gate was deleted meanwhile, ApiError and ValidationError.
    """
    # Locked: of two clicks at the same moment, the second waits and finds the experiment of the first.
    locked = same.select_for_update(of=("self",)).order_by("pk")
    if gate not in locked:  # deleted or changed meanwhile
        raise Http404
    scorers = [*dict.fromkeys(row.scorer for row in locked)]
    version = version_to_test(agent, gate)
    if (running := find_running(dataset, gate, version, scorers)) is not None:
        return running
    body = experiment_of_gate(agent, gate, version, scorers)
    reject_without_model(body, request.user)
    return create_experiment(dataset, parse_experiment(body), request.user)


def find_running(
    dataset: Dataset, gate: ReleaseGate, version: AgentVersion, scorers: Sequence[str]
) -> Experiment | None:
    """Return an unfinished experiment that tests a version as a gate asks for, or None."""
    rows = Experiment.objects.unfinished().filter(
        dataset=dataset,
        dataset_version=tested_dataset_version(gate),
        target_type=Experiment.Target.AGENT,
        target_id=version.agent_id,
        version_id=version.pk,
        # No gate accepts results that a program submits.
        is_external=False,
        has_submitted_results=False,
        cancel_requested_at=None,
    )
    return next((row for row in rows.order_by("-created_at") if {*scorers} <= {*(row.scorer_keys or ())}), None)


def version_to_test(agent: Agent, gate: ReleaseGate) -> AgentVersion:
    """Return the version whose experiment a gate waits for."""
    head = get_head_version(agent)
    return get_live_version(agent) if check_gates(agent, head, [gate])[0].needs_live else head


def experiment_of_gate(agent: Agent, gate: ReleaseGate, version: AgentVersion, scorers: Sequence[str]) -> JSONObject:
    """Return the body of a request for the experiment of a version that a gate waits for, with these scorers."""
    return {
        "targetType": "agent",
        "targetId": agent.pk,
        "agentVersion": str(version.version_number),
        "scorerIds": [*scorers],
        "version": gate.dataset_version,
    }
