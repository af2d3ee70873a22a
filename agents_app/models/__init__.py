"""The models of an agent: its row, its search index, and the answers stored for repeated requests."""

from agents_app.models.agent import Agent
from agents_app.models.idempotency import IdempotencyRecord
from agents_app.models.querysets import AgentQuerySet
from agents_app.models.search_index import AgentIndex

__all__ = ["Agent", "AgentIndex", "AgentQuerySet", "IdempotencyRecord"]
