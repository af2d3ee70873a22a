"""API views of release gates."""

from __future__ import annotations

from django.db import transaction
from django.http import HttpResponse
from django.utils import timezone
from rest_framework.request import Request

from access_app.permissions import require_granted_role
from access_app.role import Role
from agentcms.api.parsers import json_object_body
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.errors import NotFound
from agentcms.ids import parse_uuid
from agentcms.wire.json_types import JSONObject
from agents_app.api.idempotency import idempotent
from agents_app.api.lookups import agent_not_found
from agents_app.api.required_role import note_required_role
from agents_app.api.strict_requests import checking_names, warning_payloads
from agents_app.editing.locking import lock_agent_for
from agents_app.models import Agent
from evals_app.gates.checking import GateState, check_gates, gates_for
from evals_app.gates.schema import GateBody, apply_gate
from evals_app.models import Dataset, ReleaseGate
from versions_app.models.version import get_head_version

# In a response with a gate, which a caller may send back as it was read.
READ_ONLY_GATE_KEYS = (
    *("id", "agentId", "ownerId", "createdAt", "updatedAt", "warnings"),
    *("met", "message", "warning", "value", "experimentId"),
)


def get_agent(request: Request, agent_id: str) -> Agent:
    """Return an agent with its versions. Raise NotFound."""
    agent = Agent.objects.for_user(request.user).with_versions().filter(pk=agent_id).first()
    if agent is None:
        raise agent_not_found(agent_id)
    return agent


def lock_managed_agent(request: Request, agent_id: str) -> Agent:
    """Lock an agent for a change of its gates, inside a transaction.

    Raise NotFound, and RoleRequired for all but managers. Without the lock, an agent that moves to another team
    meanwhile would get gates of managers of its former team.
    """
    agent = lock_agent_for(request.user, agent_id)
    if agent is None:
        raise agent_not_found(agent_id)
    require_granted_role(request.user, Role.MANAGER, agent)
    return agent


def gate_body(gate: ReleaseGate) -> JSONObject:
    return {
        "id": gate.pk,
        "agentId": gate.agent_id,
        "allAgents": gate.agent_id is None,
        "ownerId": gate.owner_id,
        "datasetId": gate.dataset_id,
        "datasetVersion": gate.dataset_version,
        "scorer": gate.scorer,
        "statistic": gate.statistic,
        "min": gate.minimum,
        "max": gate.maximum,
        "maxFailed": gate.max_failed,
        "maxAgeDays": gate.max_age_days,
        "mode": gate.mode,
        "createdAt": gate.created_at,
        "updatedAt": gate.updated_at,
    }


def state_body(state: GateState) -> JSONObject:
    return {
        **gate_body(state.gate),
        "met": state.is_met,
        "message": state.message,
        "warning": state.warning or None,
        "value": state.value,
        "experimentId": state.experiment.pk if state.experiment else None,
    }


class GatesView(JSONView):
    """The gates of an agent with their state for its draft, and the creation of one."""

    def get(self, request: Request, agent_id: str) -> HttpResponse:
        agent = get_agent(request, agent_id)
        head = get_head_version(agent)
        states = check_gates(agent, head, gates_for(agent))
        bodies = [state_body(state) for state in states]
        return json_response({"gates": bodies, "versionNumber": head.version_number})

    @idempotent
    @transaction.atomic
    def post(self, request: Request, agent_id: str) -> HttpResponse:
        agent = lock_managed_agent(request, agent_id)
        note_required_role(Role.MANAGER, agent.owner_id)
        gate = ReleaseGate(agent=agent, owner_id=agent.owner_id, created_by_id=request.user.pk)
        body = json_object_body(request)
        with checking_names(request, body, GateBody, silent=READ_ONLY_GATE_KEYS) as names:
            apply_gate(gate, body, agent, is_new=True, datasets=Dataset.objects.for_user(request.user))
        gate.save()
        return json_response(gate_body(gate) | warning_payloads(names.unknown), 201)


class GateView(JSONView):
    """A gate of an agent: change and delete."""

    @transaction.atomic
    def patch(self, request: Request, agent_id: str, gate_id: str) -> HttpResponse:
        agent = lock_managed_agent(request, agent_id)
        gate = lock_gate(agent, gate_id)
        body = json_object_body(request)
        with checking_names(request, body, GateBody, silent=READ_ONLY_GATE_KEYS) as names:
            apply_gate(gate, body, agent, is_new=False, datasets=Dataset.objects.for_user(request.user))
        gate.updated_at = timezone.now()
        gate.save()
        return json_response(gate_body(gate) | warning_payloads(names.unknown))

    @transaction.atomic
    def delete(self, request: Request, agent_id: str, gate_id: str) -> HttpResponse:
        lock_gate(lock_managed_agent(request, agent_id), gate_id).delete()
        return json_response({"success": True, "message": f"Gate {gate_id} deleted"})


def lock_gate(agent: Agent, gate_id: str) -> ReleaseGate:
    """Lock a gate of an agent or of all agents of its team. Raise NotFound.

    Otherwise a change at the same moment would be lost: that of a gate of the team may come from another agent.
    """
    gate_uuid = parse_uuid(gate_id)
    # Not the joined dataset, whose items others may change meanwhile.
    gates = gates_for(agent).select_for_update(of=("self",))
    gate = gates.filter(pk=gate_uuid).first() if gate_uuid else None
    if gate is None:
        raise NotFound(f"Gate with id {gate_id} not found")
    return gate
