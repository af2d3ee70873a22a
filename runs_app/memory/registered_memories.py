"""Memories that are registered in code, as capabilities of an agent.

Imports pydantic-ai, which is heavy. Import this module only where an agent is built.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability

from agents_app.registry import Entry
from runs_app.building.memory_parameters import CONTEXT_PARAMETER, OPTIONS_PARAMETER, memory_parameters
from runs_app.engine.context import RunDeps


def registered_memory(entry: Entry) -> AbstractCapability[RunDeps]:
    """Return the capability of a memory: at once, or for each run if its function has parameters of a run."""
    parameters = memory_parameters(entry)
    capability: AbstractCapability[RunDeps] = MemoryOfRun(entry, parameters) if parameters else entry.target()
    return capability


@dataclass
class MemoryOfRun(AbstractCapability[RunDeps]):
    """The place of a capability that depends on the run."""

    entry: Entry
    parameters: Sequence[str]
    id: str | None = field(default="registered-memory", kw_only=True)

    async def for_run(self, ctx: RunContext[RunDeps]) -> AbstractCapability[RunDeps]:
        deps: RunDeps | None = ctx.deps  # None if trusted code runs the agent itself
        values: dict[str, Any] = {
            CONTEXT_PARAMETER: dict(deps.request_context) if deps is not None else {},
            OPTIONS_PARAMETER: dict(deps.memory_options) if deps is not None else {},
        }
        capability: AbstractCapability[RunDeps] = self.entry.target(**{name: values[name] for name in self.parameters})
        return capability
