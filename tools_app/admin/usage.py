"""The agents that use an MCP server or an ACP agent, on its page and in the question before its deletion."""

from __future__ import annotations

from access_app.caller import Caller
from agentcms.web.template_context import TemplateContext
from agents_app.models import AgentQuerySet

MAX_USERS = 20


def usage_context(user: Caller, agents: AgentQuerySet, effect: str) -> TemplateContext:
    """Return the agents that the user may see, the number of the others, and what a deletion does to them."""
    visible = [*agents.for_user(user).order_by("name", "pk")[:MAX_USERS]]
    return {"used_by": visible, "more_users": agents.count() - len(visible), "effect_on_users": effect}
