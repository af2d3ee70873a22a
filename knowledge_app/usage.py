"""The agents that search a knowledge base."""

from __future__ import annotations

from access_app.permissions import SHARED_OWNER
from agents_app.configuration.knowledge import KNOWLEDGE
from agents_app.models import Agent, AgentQuerySet
from knowledge_app.models import KnowledgeBase


def find_searching_agents(base: KnowledgeBase) -> AgentQuerySet:
    """Return the agents whose live version or draft names a base that they may search."""
    agents = Agent.objects.referring_to(KNOWLEDGE, f'"{base.key}"')
    # Agents of other teams may name the same key, but it does not resolve to this base.
    return agents if base.owner_id == SHARED_OWNER else agents.filter(owner_id=base.owner_id)
