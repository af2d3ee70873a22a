"""The registry of what agents can use: tools, workflows, memories and more, registered by key in code.

A module `agent_tools.py` in any installed app is imported at start-up. Its decorators register functions:

    @tool(title="Word count", description="Count the words of a text.")
    def word_count(text: str) -> int: ...
"""

from agents_app.registry.decorators import code_agent, is_task, processor, scorer, tool, workflow
from agents_app.registry.entries import Entry, Kind, registry

__all__ = ["Entry", "Kind", "code_agent", "is_task", "processor", "registry", "scorer", "tool", "workflow"]
