"""Lookups shared by the API views of agents and versions."""

from __future__ import annotations

from rest_framework.request import Request

from access_app.caller import Caller
from access_app.permissions import SHARED_OWNER, granted_covers, owner_ids_for, require_granted_role, require_role
from access_app.role import Role
from agentcms.errors import BadRequest, Conflict, Forbidden, NotFound
from agentcms.ids import parse_uuid
from agentcms.wire.json_types import JSONObject
from agentcms.wire.unknown_names import UnknownName
from agents_app.api.preconditions import ProposedEdit, validate_if_match
from agents_app.api.required_role import note_required_role
from agents_app.configuration.sub_agents import describe_dependents
from agents_app.editing.locking import lock_agent_for
from agents_app.models import Agent
from versions_app.models import AgentVersion
from versions_app.models.version import get_live_version

DRAFT_HINT = "Send autoPublish: false to save a draft."


def gate_notes(agent: Agent) -> list[UnknownName]:
    """Return a warning if a save stayed a draft because of a gate, or if a gate only warns of what went live."""
    if agent.draft_reason:
        return [UnknownName("autoPublish", "autoPublish", f"Saved as a draft. {agent.draft_reason}")]
    return [UnknownName("gates", "gates", agent.gate_warning)] if agent.gate_warning else []


def agent_not_found(agent_id: str) -> NotFound:
    """Return the same error for an agent that does not exist and for one that the caller may not see."""
    return NotFound(f"Stored agent with id {agent_id} not found")


def lock_matching_agent(
    request: Request, agent_id: str, role: Role, hint: str = "", edit: ProposedEdit | None = None
) -> Agent:
    """Lock an agent for a write, inside a transaction.

    Raise NotFound where the caller may not see it, RoleRequired without the role, and PreconditionFailed where
    `If-Match` names another state, which says whether `edit` touches what changed since. `hint` is what an editor can
    do without the role.
    """
    agent = lock_agent_for(request.user, agent_id)
    if agent is None:
        raise agent_not_found(agent_id)
    # A viewer cannot save a draft either, and would only be refused again.
    can_follow_hint = granted_covers(request.user, Role.EDITOR, agent.granted)
    require_granted_role(request.user, role, agent, hint if can_follow_hint else "")
    note_required_role(role, agent.owner_id)
    validate_if_match(request, agent, edit)
    return agent


def draft_hint(fields: JSONObject, owner_id: str | None) -> str:
    """Return what an editor can do who may not publish a change. A change of the owner is never a draft."""
    if owner_id is None:
        return DRAFT_HINT
    return "Send autoPublish: false without ownerId to save the other fields as a draft." if fields else ""


def reject_dependents(request: Request, agent: Agent, verb: str, new_owner_id: str | None = None) -> None:
    """Raise Conflict if other agents lose this one as a sub-agent. `verb` names the action."""
    if users := describe_dependents(request.user, agent, new_owner_id):
        message = f"Agent {agent.pk} is a sub-agent of {users}. Send force=true to {verb} it anyway."
        raise Conflict(message, "in_use")


def get_version_or_live(agent: Agent, text: str | None) -> AgentVersion:
    """Return a version of the agent by ID, or the live version without one. Raise NotFound."""
    if text is None:
        return get_live_version(agent)
    version_id = parse_uuid(text)
    version = agent.versions.filter(pk=version_id).first() if version_id else None
    if version is None:
        raise version_not_found(agent.pk, text)
    return version


def version_not_found(agent_id: str, version_id: str) -> NotFound:
    return NotFound(f"Version with id {version_id} not found for agent {agent_id}")


def owner_for_new_row(user: Caller, requested: str | None) -> str:
    """Return the owner of a new row, such as an agent: the requested one, or the only one whose editor the user is.

    Raise BadRequest where several are possible, and Forbidden and RoleRequired without the role.
    """
    if requested is None and not user.is_superuser:
        # Two are enough to know that there are several.
        owner_ids = list(owner_ids_for(user, Role.EDITOR)[:2])
        if len(owner_ids) > 1:
            message = "You are an editor for several owners. Send the ownerId of one."
            raise BadRequest("request body", [("ownerId", message)])
        if not owner_ids:
            raise Forbidden("This needs the editor role for an owner.")
        return owner_ids[0]
    # A superuser has the role for every owner, so nothing but Shared suggests itself.
    owner_id = SHARED_OWNER if requested is None else requested
    require_role(user, Role.EDITOR, owner_id)
    return owner_id
