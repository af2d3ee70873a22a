"""Targets of experiments: versions of agents."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from access_app.caller import Caller
from agentcms.errors import ApiError
from agentcms.ids import parse_uuid
from agentcms.wire.canonical import canonical, sha256_hex
from agents_app.configuration.schema import ConfigError, Issue, JSONObject
from agents_app.models import Agent
from evals_app.models import Experiment
from runs_app.resolution import ResolvedAgent, stored_agents
from versions_app.models import AgentVersion

ONLY_AGENTS_MESSAGE = "Only agents can be run here. Run other targets yourself and send start: false."


@dataclass(frozen=True)
class Target:
    """An agent at a version, with the versions of its sub-agents now."""

    agent: ResolvedAgent
    state: str
    snapshot_hash: str = ""
    sub_agents: JSONObject = field(default_factory=dict)


def target_not_found(target_id: str) -> ApiError:
    return ApiError(404, f"Target '{target_id}' of the experiment was not found", "EXPERIMENT_TARGET_NOT_FOUND")


def find_target(user: Caller, target_id: str, version: str = "") -> Target:
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
    except (Agent.DoesNotExist, AgentVersion.DoesNotExist, ValueError, OverflowError):
        raise target_not_found(f"{target_id} {version}".strip()) from None
    return Target(agent, state, snapshot_hash(agent), sub_agent_versions(agent))


def snapshot_hash(agent: ResolvedAgent) -> str:
    """Return the hash of the configuration, which two versions with equal content share."""
    if agent.version_id is None:
        return sha256_hex(canonical(dict(agent.configuration)))
    stored = AgentVersion.objects.filter(pk=agent.version_id).values_list("snapshot_hash", flat=True).first()
    return stored or ""


def sub_agent_versions(agent: ResolvedAgent) -> JSONObject:
    """Return the live versions of the sub-agents, by the ID of each."""
    return live_versions(agent.configuration.get("agents") or [], agent.owner_id)


def live_versions(keys: list[str], owner_id: str) -> JSONObject:
    """Return the live versions of stored agents that agents of an owner may use, by the ID of each."""
    rows = Agent.objects.with_ids(keys).of_usable_owners(owner_id)
    return {key: str(version) for key, version in rows.values_list("pk", "active_version_id") if version}


def resolve(experiment: Experiment, user: Caller) -> ResolvedAgent:
    """Return the agent of an experiment at the version with which it was created. Raise ApiError."""
    version_id: UUID | None = experiment.version_id
    try:
        if version_id is None:
            return stored_agents.get(experiment.target_id, user=user)
        return stored_agents.get(experiment.target_id, user=user, version_id=version_id)
    except (Agent.DoesNotExist, AgentVersion.DoesNotExist):
        raise target_not_found(experiment.target_id) from None


def require_agent(target_type: str) -> None:
    """Raise ConfigError for a target that does not run here."""
    if target_type != "agent":
        raise ConfigError([Issue("targetType", ONLY_AGENTS_MESSAGE)])
