"""What a running agent knows of the run it serves: pydantic-ai hands it to every tool and capability as `deps`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from agents_app.configuration.references import MissingReference

# Asks a sub-agent by key in a child run: (key, prompt, tool call id) → its answer.
AskSubAgent = Callable[[str, str, str], Awaitable[str]]


@dataclass
class Running:
    """One run while it runs. Nothing in it outlives the run: what must be kept is in the rows."""

    run_id: UUID
    agent_key: str
    owner_id: str
    user_id: int | None
    ask_sub_agent: AskSubAgent
    thread_id: int | None = None
    remembered: int = 0  # messages of earlier runs that stand before those of this one
    # The agents that asked one another to come here, this one last: a sub-agent among them would close a circle.
    visited: tuple[str, ...] = ()
    warnings: list[MissingReference] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
