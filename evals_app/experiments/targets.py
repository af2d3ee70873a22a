"""Targets of experiments: versions of agents, workflows and scorers."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from access_app.caller import Caller
from access_app.permissions import require_role
from access_app.role import Role
from agentcms.errors import Conflict
from agentcms.ids import parse_uuid
from agentcms.wire.canonical import canonical, sha256_hex
from agentcms.wire.json_types import JSONObject
from agents_app.models import Agent
from evals_app.experiments.direct.targets import Callee, find_callee, target_not_found, version_state_of
from evals_app.models import Experiment
from runs_app.providers.cached_providers import model_unavailable_reason
from runs_app.resolution import ResolvedAgent, stored_agents
from versions_app.models import AgentVersion


@dataclass(frozen=True)
class AgentTarget:
    """An agent at a version, with the versions of its sub-agents now."""

    agent: ResolvedAgent
    state: str
    snapshot_hash: str = ""
    sub_agents: JSONObject = field(default_factory=dict)


def find_agent_target(user: Caller, target_id: str, version: str) -> AgentTarget:
    """Return an agent at a version: its ID or number, `draft`, or live by default. Raise ApiError."""
    state = version or "live"
    try:
        if state in ("live", "draft"):
            status = "published" if state == "live" else "draft"
            agent = stored_agents.get(target_id, user=user, status=status)
        elif version_id := parse_uuid(state):
            agent = stored_agents.get(target_id, user=user, version_id=version_id)
        else:
            agent = stored_agents.get(target_id, user=user, version_number=int(state.removeprefix("v")))
    # SQLite raises OverflowError for a number beyond 64 bits.
    except (Agent.DoesNotExist, AgentVersion.DoesNotExist, ValueError, OverflowError):
        raise target_not_found(target_id, version) from None
    return AgentTarget(agent, version_state_of(version), snapshot_hash(agent), sub_agent_versions(agent))


def no_answer_reason(agent: ResolvedAgent) -> str:
    """Return why no model of an agent is available now, or a blank text.

    An agent whose model depends on the request context counts as available: only the run knows its model.
    """
    configuration = agent.configuration
    if (configuration.get("conditional") or {}).get("model"):
        return ""
    reason = model_unavailable_reason(configuration["model"]["provider"])
    return f"{configuration['name']} cannot answer: {reason}" if reason else ""


def reject_without_model(body: JSONObject, user: Caller) -> None:
    """Raise Conflict if no item could be answered, because the model of the agent is not available."""
    if body["targetType"] == Experiment.Target.AGENT:
        target = find_agent_target(user, body["targetId"], body.get("agentVersion") or "")
        if reason := no_answer_reason(target.agent):
            raise Conflict(reason, "model_unavailable")


def snapshot_hash(agent: ResolvedAgent) -> str:
    """Return the hash of the configuration, which two versions with equal content share."""
    if agent.version_id is None:
        return sha256_hex(canonical(dict(agent.configuration)))
    stored = AgentVersion.objects.filter(pk=agent.version_id).values_list("snapshot_hash", flat=True).first()
    return stored or ""


def sub_agent_versions(agent: ResolvedAgent) -> JSONObject:
    """Return the live versions of the sub-agents at all depths, by the ID of each."""
    versions: JSONObject = {}
    keys, owner_id = agent.configuration.get("agents") or [], agent.owner_id
    # Without those that are known already: sub-agents may lead back to each other.
    while level := {key: version for key, version in live_version_ids(keys, owner_id).items() if key not in versions}:
        versions |= level
        references = AgentVersion.objects.filter(pk__in=level.values()).values_list("references", flat=True)
        keys = [key for row in references for key in row.get("agents") or []]
    return versions


def live_version_ids(keys: list[str], owner_id: str) -> JSONObject:
    """Return the live versions of stored agents that agents of an owner may use, by the ID of each."""
    rows = Agent.objects.with_ids(keys).of_usable_owners(owner_id)
    return {key: str(version) for key, version in rows.values_list("pk", "active_version_id") if version}


def resolve_target(experiment: Experiment, user: Caller) -> ResolvedAgent | Callee:
    """Return the target of an experiment at the version with which it was created.

    Raise ApiError, and RoleRequired if the user may not run it.
    """
    version_id: UUID | None = experiment.version_id
    require_role(user, Role.EDITOR, experiment.target_owner_id)
    if experiment.target_type != Experiment.Target.AGENT:
        version = str(version_id) if version_id else ""
        return find_callee(experiment.target_type, experiment.target_id, experiment.target_owner_id, version)
    try:
        if version_id is None:
            return stored_agents.get(experiment.target_id, user=user)
        return stored_agents.get(experiment.target_id, user=user, version_id=version_id)
    except (Agent.DoesNotExist, AgentVersion.DoesNotExist):
        raise target_not_found(experiment.target_id) from None
