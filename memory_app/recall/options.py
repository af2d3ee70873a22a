"""Options of semantic recall, from the memory of an agent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from django.conf import settings

from agents_app.configuration.memory.options import MemoryOptions, parse_memory_options
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


def recalling_agents() -> Iterator[tuple[Agent, RecallSettings]]:
    """Yield the agents whose live version recalls messages, with its options."""
    for agent in Agent.objects.exclude(memory=None).select_related("active_version"):
        if (options := recall_of_agent(agent)) is not None:
            yield agent, options


def used_embedders() -> set[str]:
    """Return the embedders of all agents that recall messages, and the default one."""
    return {settings.MEMORY_EMBEDDER} | {options.embedder for _, options in recalling_agents()}


def recall_of_agent(agent: Agent | None) -> RecallSettings | None:
    """Return the options of the live version of an agent, or None."""
    version = agent.active_version if agent else None
    return recall_options(version.snapshot.get("memory")) if version else None
