"""Lookups for the API views of agents and runs."""

from __future__ import annotations

from uuid import UUID

from rest_framework.request import Request

from agentcms.api.query_params import QueryParams
from agentcms.errors import NotFound
from agentcms.ids import parse_uuid
from agents_app.api.lookups import agent_not_found, version_not_found
from agents_app.models import Agent
from runs_app.models import AgentRun, PendingCall
from runs_app.resolution import ResolvedAgent, stored_agents
from versions_app.models import AgentVersion

VERSION_PARAMETERS = ("status", "versionId", "versionNumber")


def get_requested_agent(request: Request, agent_id: str) -> ResolvedAgent:
    """Return the agent at the version of the query parameters: by ID, number or status."""
    with QueryParams(request) as query:
        status = query.choice("status", ("published", "draft"), "published")
        text, number = query.text("versionId"), query.integer("versionNumber", 0, 1)
    version_id: UUID | None = parse_uuid(text) if text else None
    try:
        if text and version_id is None:
            stored_agents.get(agent_id, user=request.user)  # a missing agent is reported before a missing version
            raise AgentVersion.DoesNotExist
        return stored_agents.get(
            agent_id, user=request.user, version_id=version_id, version_number=number or None, status=status
        )
    except Agent.DoesNotExist:
        raise agent_not_found(agent_id) from None
    except AgentVersion.DoesNotExist:
        raise version_not_found(agent_id, text or str(number)) from None


def get_readable_run(request: Request, run_id: str) -> AgentRun:
    """Return a run that the user may read. Raise NotFound for any other."""
    uuid = parse_uuid(run_id)
    runs = AgentRun.objects.for_user(request.user).with_roles(request.user).select_related("thread")
    runs = runs.defer("conversation")  # messages for the next segment alone
    run = runs.filter(pk=uuid).first() if uuid else None
    if run is None:
        raise run_not_found(run_id)
    return run


def get_run_of_agent(request: Request, agent_id: str, run_id: str) -> AgentRun:
    """Return a run of this agent that the user may read. Raise NotFound for any other."""
    run = get_readable_run(request, run_id)
    if run.agent_key != agent_id:
        raise run_not_found(run_id)
    return run


def run_not_found(run_id: str) -> NotFound:
    return NotFound(f"Run with id {run_id} not found")


def get_readable_call(request: Request, approval_id: str) -> PendingCall:
    """Return a call that the user may read. Raise NotFound for any other."""
    uuid = parse_uuid(approval_id)
    call = PendingCall.objects.readable_by(request.user).filter(pk=uuid).first() if uuid else None
    if call is None:
        raise NotFound(f"Approval with id {approval_id} not found")
    return call
