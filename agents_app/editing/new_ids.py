"""IDs for new agents."""

from __future__ import annotations

from agentcms.ids import first_unused
from agentcms.lookalike_ids import derive_clear_id
from agents_app.models import Agent


def copy_id(agent: Agent) -> str:
    """Return an ID for a duplicate. Agents of earlier releases may have IDs that new agents may not have."""
    # An ID has at most 128 characters, and "-copy" and a number follow.
    return f"{derive_clear_id(agent.pk[:110], 'agent')}-copy"


def find_unused_id(stem: str) -> str:
    """Return the stem, or the stem with the first number that makes it unused."""
    return first_unused(stem, set(Agent.objects.filter(pk__startswith=stem).values_list("pk", flat=True)))
