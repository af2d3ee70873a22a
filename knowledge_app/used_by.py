"""The agents that search a knowledge base."""

from __future__ import annotations

from agents_app.configuration.knowledge import KNOWLEDGE
from agents_app.models import Agent, AgentQuerySet
from knowledge_app.models import KnowledgeBase


def find_searching_agents(base: KnowledgeBase) -> AgentQuerySet:
    """Return the agents whose live version or draft names a base that they may search."""
    return Agent.objects.using_row(KNOWLEDGE, base.key, base.owner_id)
