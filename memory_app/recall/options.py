"""Options of semantic recall, from the memory of an agent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from django.conf import settings
from django.db.models import F, Q, QuerySet

from agentcms.wire.json_types import JSONValue
from agents_app.configuration.memory.options import MemoryOptions, parse_memory_options
from agents_app.configuration.variants import CONDITIONAL
from agents_app.models import Agent


@dataclass(frozen=True)
class RecallSettings:
    """Options of one agent: it recalls `top_k` messages, each with messages before and after it.

    Messages that are less similar than `threshold` are left out.
    """

    embedder: str
    top_k: int = 4
    before: int = 1
    after: int = 1
    scope: Literal["resource", "thread"] = "resource"
    threshold: float | None = None


def recall_options(memory: object) -> RecallSettings | None:
    """Return the options of the memory of a configuration, or None without semantic recall."""
    options = parse_memory_options(memory)
    return recall_options_of(options) if options is not None else None


def recall_options_of(options: MemoryOptions) -> RecallSettings | None:
    """Return the options of semantic recall, or None if it is off."""
    if (recall := options.recall) is None:
        return None
    embedder = options.embedder or settings.MEMORY_EMBEDDER
    return RecallSettings(embedder, recall.top_k, *recall.neighbours, recall.scope, recall.threshold)


def agents_with_memory() -> QuerySet[Agent]:
    """Return the agents whose live version may have a memory, also in a variant."""
    # The columns are those of the head, from which the live version differs while there is a draft.
    has_draft = ~Q(head_version=F("active_version"))
    agents = Agent.objects.filter(Q(memory__isnull=False) | Q(conditional__isnull=False) | has_draft)
    return agents.select_related("active_version")


def used_embedders() -> set[str]:
    """Return the embedders of all agents that recall messages, and the default."""
    return {settings.MEMORY_EMBEDDER}.union(*map(recall_embedders, agents_with_memory()))


def recall_embedders(agent: Agent) -> set[str]:
    """Return the embedders by which the live version of an agent recalls messages, also in variants of its memory."""
    return {options.embedder for options in map(recall_options, memories_of(agent)) if options is not None}


def memories_of(agent: Agent) -> list[JSONValue]:
    """Return the memory of the live version of an agent, and its variants."""
    snapshot = agent.active_version.snapshot if agent.active_version else {}
    variants = (snapshot.get(CONDITIONAL) or {}).get("memory") or []
    return [snapshot.get("memory"), *(variant["value"] for variant in variants)]
