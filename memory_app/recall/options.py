"""Options of semantic recall, from the memory of an agent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from django.conf import settings

from agents_app.models import Agent

Scope = Literal["resource", "thread"]

DEFAULT_TOP_K = 4
DEFAULT_RANGE = 1


@dataclass(frozen=True)
class RecallOptions:
    """Options of one agent: it recalls `top_k` messages, each with messages before and after it.

    Messages that are less similar than `threshold` are left out.
    """

    embedder: str
    top_k: int = DEFAULT_TOP_K
    before: int = DEFAULT_RANGE
    after: int = DEFAULT_RANGE
    scope: Scope = "resource"
    threshold: float | None = None


def recall_options(memory: Any) -> RecallOptions | None:
    """Return the options of the memory of a configuration, or None without semantic recall.

    `memory` was validated when the agent was saved.
    """
    if not isinstance(memory, dict):
        return None
    chosen = (memory.get("options") or {}).get("semanticRecall")
    if not chosen and chosen != {}:
        return None
    values = chosen if isinstance(chosen, dict) else {}
    before, after = messages_around_each(values.get("messageRange", DEFAULT_RANGE))
    return RecallOptions(
        embedder=memory.get("embedder") or settings.MEMORY_EMBEDDER,
        top_k=values.get("topK", DEFAULT_TOP_K),
        before=before,
        after=after,
        scope=values.get("scope", "resource"),
        threshold=values.get("threshold"),
    )


def messages_around_each(value: Any) -> tuple[int, int]:
    """Return the numbers of messages before and after each recalled one, from a number or an object with both."""
    if isinstance(value, dict):
        return value.get("before", 0), value.get("after", 0)
    return value or 0, value or 0


def recalling_agents() -> Iterator[tuple[Agent, RecallOptions]]:
    """Yield the agents whose live version recalls messages, with its options."""
    for agent in Agent.objects.exclude(memory=None).select_related("active_version"):
        if (options := recall_of_agent(agent)) is not None:
            yield agent, options


def used_embedders() -> set[str]:
    """Return the embedders of all agents that recall messages, and the default one."""
    return {settings.MEMORY_EMBEDDER} | {options.embedder for _, options in recalling_agents()}


def recall_of_agent(agent: Agent | None) -> RecallOptions | None:
    """Return the options of the live version of an agent, or None."""
    version = agent.active_version if agent else None
    return recall_options(version.snapshot.get("memory")) if version else None
