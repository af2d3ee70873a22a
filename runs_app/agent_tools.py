"""Registration of the built-in memory and of the response cache.

The target of a memory returns a capability of pydantic-ai.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_app.registry import Entry, Kind, processor, registry
from runs_app.response_cache.options import DEFAULT_SECONDS, PROCESSOR_KEY

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


@processor(PROCESSOR_KEY, title="Response cache")
def response_cache(
    text: str,
    ttl: int = DEFAULT_SECONDS,
    scope: str | None = "",
    bust: bool = False,
    cache_key: str = "",
    tools: bool = False,
) -> str:
    """Answer a request to the model like an equal one before it, for `ttl` seconds.

    The builder of an agent reads these arguments. The texts stay unchanged.
    """
    return text
