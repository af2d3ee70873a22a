"""The models of agents: the agent, its search index and the records of idempotent requests."""

from agents_app.models.agent import Agent
from agents_app.models.idempotency import IdempotencyRecord
from agents_app.models.querysets import AgentQuerySet
from agents_app.models.search_index import AgentIndex

__all__ = ["Agent", "AgentIndex", "AgentQuerySet", "IdempotencyRecord"]
