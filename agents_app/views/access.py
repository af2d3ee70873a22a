"""Lookups and permission checks shared by the agent pages."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404

from access_app.caller import Caller
from access_app.permissions import granted_covers, has_role_everywhere, has_role_somewhere, require_granted_role
from access_app.role import SHARED_LABEL, Role
from access_app.teams import known_owners
from agentcms.web.dialogs import RowReplaced, sent_value
from agentcms.web.list_state import encode_query
from agentcms.web.template_context import TemplateContext
from agentcms.wire.json_types import JSONMapping
from agents_app.models import Agent, AgentQuerySet

GET_POST = ("GET", "HEAD", "POST")

# A page shows the configuration from the agent's row, so the two snapshots, each as long, are not loaded.
SNAPSHOT_COLUMNS = ("active_version__snapshot_text", "head_version__snapshot_text")


class AgentReplaced(RowReplaced):
    """The agent of a dialog was deleted since the dialog was opened, and another one has its ID."""

    def __init__(self) -> None:
        super().__init__(
            "The agent was deleted in the meantime, and this one was created or restored with its ID. "
            "Nothing was changed. Look at it before you try again."
        )


def visible_agents(request: HttpRequest) -> AgentQuerySet:
    """Return the agents that the user may see, with the role granted by the owner of each."""
    return Agent.objects.for_user(request.user).with_role(request.user)


def can_choose_agent(request: HttpRequest) -> bool:
    """Return True if the list of agents has a next step for the user: an agent, or the button for a new one."""
    return has_role_somewhere(request.user, Role.EDITOR) or visible_agents(request).exists()


def get_agent(request: HttpRequest, agent_id: str) -> Agent:
    """Return an agent with its live and head versions. Raise Http404 if the user may not see it."""
    return get_object_or_404(visible_agents(request).with_versions().defer(*SNAPSHOT_COLUMNS), pk=agent_id)


def sub_agent_names(request: HttpRequest, snapshot: JSONMapping) -> dict[str, str]:
    """Return the names of the stored sub-agents in a configuration that the user may see."""
    keys = snapshot.get("agents") or ()
    agents = Agent.objects.for_user(request.user).with_ids(keys).order_by()
    return dict(agents.values_list("pk", "name")) if keys else {}


def lock_agent(request: HttpRequest, agent_id: str, role: Role) -> Agent:
    """Lock an agent inside a transaction.

    Raise Http404 if the user may not see it, RoleRequired without the role, and AgentReplaced for the form of a dialog
    about another agent.
    """
    try:
        agent = visible_agents(request).get_locked(agent_id)
    except Agent.DoesNotExist:
        raise Http404 from None
    require_granted_role(request.user, role, agent)
    reject_replaced(request, agent)
    return agent


def reject_replaced(request: HttpRequest, agent: Agent) -> None:
    """Raise AgentReplaced if the form of a dialog or the URL of an Undo button names the key of another row.

    Other forms name none.
    """
    if sent_value(request, "agent_key", agent.row_key) != agent.row_key:
        raise AgentReplaced


def with_agent_key(url: str, agent: Agent) -> str:
    """Return the URL of an Undo button, which does nothing to another agent that has the ID of this one by then."""
    return f"{url}?{encode_query(agent_key=agent.row_key)}"


def selected_agents(request: HttpRequest) -> AgentQuerySet:
    """Return the agents that the user may see, for an action on selected ones.

    A form with their keys gets these rows alone: another agent may have an ID of them by now.
    """
    agents, keys = Agent.objects.for_user(request.user), request.POST.getlist("agent_key")
    return agents.filter(row_key__in=[key.replace("\0", "") for key in keys]) if keys else agents


def has_role_for(request: HttpRequest, agent: Agent, role: Role) -> bool:
    """Return whether the user has a role for an agent from `visible_agents`."""
    return granted_covers(request.user, role, agent.granted)


def missing_role_message(request: HttpRequest, agent: Agent, role: Role) -> str:
    """Return the role requirement as a sentence, or an empty text if the user has the role."""
    if has_role_for(request, agent, role):
        return ""
    return f"This {role_requirement(agent, role)}"


def role_requirement(agent: Agent, role: Role) -> str:
    return f"needs the {role.label} role in {agent.owner_id or SHARED_LABEL}. Ask a manager of the team for it."


def permission_context(request: HttpRequest, agent: Agent) -> TemplateContext:
    """Return the template context with the user's permissions for an agent. Nobody may change an archived one."""
    may_edit = has_role_for(request, agent, Role.EDITOR)
    may_publish = has_role_for(request, agent, Role.PUBLISHER)
    may_delete = may_publish  # archive, unarchive and delete
    limits = ""
    if agent.archived_at is not None:
        limits = archived_message(agent)
        # Not `may_delete`: an archived agent can be unarchived and deleted.
        may_edit = may_publish = False
    elif not may_edit:
        limits = f"You can view this agent. Editing {role_requirement(agent, Role.EDITOR)}"
    elif not may_publish:
        limits = f"You can save drafts. Publishing {role_requirement(agent, Role.PUBLISHER)}"
    return {"may_edit": may_edit, "may_publish": may_publish, "may_delete": may_delete, "limits": limits}


def archived_message(agent: Agent) -> str:
    """Return that an agent is archived and what follows from it, or a blank text if it is not."""
    if agent.archived_at is None:
        return ""
    author = f" by {agent.archived_by_name}" if agent.archived_by_name else ""
    return (
        f"This agent was archived on {agent.archived_at:%-d %B %Y}{author}. Unarchive it to edit, publish or run it."
    )


def can_duplicate(request: HttpRequest, agent: Agent) -> bool:
    """Return whether the user may create agents for at least one owner, this agent's or another."""
    # The role for the agent is loaded with it, so that most pages take no query here.
    return has_role_for(request, agent, Role.EDITOR) or has_role_somewhere(request.user, Role.EDITOR)


def posted_owner(request: HttpRequest, owners: Sequence[str]) -> str:
    """Return the owner that a form of a new agent names, or the first one if the user may not create for that owner.

    The form shows the tools, the knowledge bases and the scorers of the owner.
    """
    owner_id = str(request.POST.get("owner_id", owners[0]))
    return owner_id if owner_id in owners else owners[0]


def selectable_owners(user: Caller, role: Role) -> list[str]:
    """Return the owners for which a user has a role. Superusers also get owners without members."""
    owners = known_owners(user, role)
    if not has_role_everywhere(user, role):
        return owners
    return sorted({*owners, *Agent.objects.order_by().values_list("owner_id", flat=True).distinct()})
