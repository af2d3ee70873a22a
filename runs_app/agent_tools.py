"""Registration of the built-in memory. The target of a memory returns a capability of pydantic-ai."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_app.registry import Entry, Kind, registry

if TYPE_CHECKING:
    from runs_app.memory.last_messages import LastMessages


def last_messages() -> LastMessages:
    from runs_app.memory.last_messages import LastMessages  # imports pydantic-ai, which is heavy

    return LastMessages()


registry.add(
    Entry(
        Kind.MEMORY,
        "last-messages",
        "Last messages",
        "The last twenty messages of the thread.",
        target=last_messages,
    )
)
