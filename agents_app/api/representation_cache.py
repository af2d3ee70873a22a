"""A cache of agents as JSON text, for lists. A single agent is read with one query instead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cachetools import FIFOCache

from access_app.caller import Caller
from agentcms.api.pagination import PageSize, in_parts
from agentcms.cache import SizeLimitedCache
from agents_app.api.representation import AgentRow, AgentText, agent_rows_by_id, agents_json

MAX_CACHED_CHARACTERS = 8_000_000  # some thousands of agents
# A few large agents must not push out all others.
MAX_TEXT_CHARACTERS = MAX_CACHED_CHARACTERS // 100


class AgentKey(NamedTuple):
    """An agent at a revision, whose content never changes. An id that is used again has another row key."""

    id: str
    row_key: str
    revision: int


def _size(agent: AgentText) -> int:
    return len(agent.text) + len(agent.references)


# The first part of a key is the relation of the version that the text shows.
_texts: SizeLimitedCache[tuple[str, AgentKey], AgentText] = SizeLimitedCache(
    FIFOCache(MAX_CACHED_CHARACTERS, getsizeof=_size), MAX_TEXT_CHARACTERS
)


def get_many_json(user: Caller, keys: Sequence[AgentKey], relation: str) -> list[str]:
    """Return the JSON text of each agent. Agents that are not cached are read in parts.

    Raise BadRequest if they are too large for one page.

    An agent that changed since its key was read is shown as it is now. One that was deleted is left out.
    """
    cached = _texts.get_many([(relation, key) for key in keys])
    texts = {key.id: text for (_, key), text in cached.items()}
    # A few pages of large agents at once would take all memory.
    size = PageSize()
    for missing in in_parts([key.id for key in keys if key.id not in texts]):
        loaded = _load(user, missing, relation)
        size.add(sum(len(text.text) for text in loaded.values()))
        texts |= loaded
    return agents_json([texts[key.id] for key in keys if key.id in texts])


def _load(user: Caller, agent_ids: list[str], relation: str) -> dict[str, AgentText]:
    """Read the agents that the user may see, and cache them."""
    texts = {}
    for columns in agent_rows_by_id(relation, user=user, agent_ids=agent_ids):
        row = AgentRow(*columns)
        texts[row.id] = text = AgentText.of(row)
        _texts.set((relation, AgentKey(row.id, row.row_key, row.revision)), text)
    return texts
