"""The lock that every change of an agent over the API takes first."""

from __future__ import annotations

from access_app.caller import Caller
from access_app.caller_params import CallerParam
from agentcms.db.statements.compiled_query import compiled_query, run_together
from agents_app.models import Agent, AgentQuerySet


@compiled_query
def locked_agent(*, user: CallerParam, agent_id: str) -> AgentQuerySet:
    agents = Agent.objects.for_user(user).with_role(user).filter(pk=agent_id)
    return agents.order_by().select_for_update(of=("self",), no_key=True)


@compiled_query
def agent_with_live_version(*, user: CallerParam, agent_id: str) -> AgentQuerySet:
    # For the user too: without the filter, the response time would tell whether a hidden agent exists.
    agents = Agent.objects.for_user(user).filter(pk=agent_id)
    return agents.order_by().select_related("active_version").only("active_version")


def lock_agent_for(user: Caller, agent_id: str) -> Agent | None:
    """Lock an agent and load its live version in one round trip, inside a transaction.

    Return the agent with the role that its owner granted the user, or None if the user may not see it.
    """
    # Two statements: a single one that waited for the lock would read the version as it was before the wait.
    agents, live = run_together(
        locked_agent.bind(user=user, agent_id=agent_id), agent_with_live_version.bind(user=user, agent_id=agent_id)
    )
    if not (agents and live):
        return None
    agent: Agent = agents[0]
    agent.active_version = live[0].active_version
    agent.share_live_head()
    return agent
