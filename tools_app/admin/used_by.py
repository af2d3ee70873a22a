"""The agents that use an MCP server or an ACP agent, on its page and in the question before its deletion."""

from __future__ import annotations

from access_app.caller import Caller
from agentcms.web.template_context import TemplateContext
from agents_app.models import AgentQuerySet

MAX_AGENTS = 20


def used_by_context(user: Caller, agents: AgentQuerySet, effect: str) -> TemplateContext:
    """Return the agents that the user may see, the number of the others, and what a deletion does to them."""
    visible = [*agents.for_user(user).order_by("name", "pk")[:MAX_AGENTS]]
    return {"used_by": visible, "more_agents": agents.count() - len(visible), "effect_on_agents": effect}
