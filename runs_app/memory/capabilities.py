"""The capabilities of a memory whose options belong to the agent.

Imports pydantic-ai, which is heavy. Import this module only where an agent is built.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pydantic_ai import Tool
from pydantic_ai.capabilities import AbstractCapability

from agentcms.wire.json_types import JSONMapping
from agents_app.configuration.memory.options import MemoryOptions
from memory_app.observational.limits import observation_limits
from memory_app.recall.options import recall_options_of
from runs_app.engine.context import RunDeps
from runs_app.memory.last_messages import LastMessages
from runs_app.memory.observations import Observations
from runs_app.memory.semantic_recall import SemanticRecall
from runs_app.memory.working import WorkingMemoryCapability


def memory_capabilities(memory: MemoryOptions, model: JSONMapping) -> Iterator[AbstractCapability[RunDeps]]:
    """Yield the capabilities of a memory. The first is the outermost. `model` is that of the agent."""
    limits = None
    if memory.observational is not None:
        limits = observation_limits(memory.observational)
        yield Observations(memory.observational, model)
    title_from = memory.title.min_messages if memory.title is not None else None
    yield LastMessages(memory.max_messages, memory.max_tokens, memory.options.read_only, title_from, limits)
    if (working := memory.working) is not None:
        yield WorkingMemoryCapability(working, memory.options.read_only)
    # After the last messages: it recalls none of those that the model gets anyway, and puts its own before them.
    if (recall := recall_options_of(memory)) is not None:
        yield SemanticRecall(recall)


def tools_of_memory(capabilities: Iterable[AbstractCapability[RunDeps]]) -> Iterator[Tool[RunDeps]]:
    """Yield the tools that the options of a memory give an agent. People decide their calls too, and edit them."""
    for capability in capabilities:
        if isinstance(capability, WorkingMemoryCapability):
            yield from capability.toolset.tools.values()
