"""Options of working memory, from the memory of an agent."""

from __future__ import annotations

from agentcms.wire.json_types import JSONValue
from agents_app.configuration.memory.options import WorkingMemoryOptions, parse_memory_options
from agents_app.models import Agent


def working_options_of(agent: Agent | None) -> WorkingMemoryOptions | None:
    """Return the options of the live version of an agent, or None without working memory."""
    version = agent.active_version if agent else None
    return working_options(version.snapshot.get("memory")) if version else None


def working_options(memory: JSONValue) -> WorkingMemoryOptions | None:
    """Return the options of the memory of a configuration, or None without working memory."""
    options = parse_memory_options(memory)
    return options.working if options else None
