"""A cache of agents as JSON text, for lists. A single agent is read with everything in one query."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from cachetools import FIFOCache

from access_app.caller_params import CALLER_PARAMS, CallerKind, caller_params, placeholder_caller
from agentcms.cache import SizeLimitedCache
from agentcms.db.compiled_query import CompiledQuery
from agents_app.api import representation
from agents_app.api.representation import AgentRow, AgentText
from agents_app.models import Agent

MAX_CHARACTERS = 8_000_000  # some thousands of agents
MAX_TEXT_CHARACTERS = MAX_CHARACTERS // 100


class AgentKey(NamedTuple):
    """An agent at a revision, whose content never changes. An id that is used again has another row key."""

    id: str
    row_key: str
    revision: int


def _size(agent: AgentText) -> int:
    return len(agent.text) + len(agent.references)


# The first part of a key is the relation of the version that the text shows.
_texts: SizeLimitedCache[tuple[str, AgentKey], AgentText] = SizeLimitedCache(
    FIFOCache(MAX_CHARACTERS, getsizeof=_size), MAX_TEXT_CHARACTERS
)


def get_many(user: Any, keys: Sequence[AgentKey], shown: str) -> list[AgentText]:
    """Return the texts of these agents; those that are not cached are read in one query.

    An agent that changed since its key was read is shown as it is now. One that was deleted is left out.
    """
    cached = _texts.get_many([(shown, key) for key in keys])
    texts = {key.id: text for (_, key), text in cached.items()}
    if missing := [key.id for key in keys if key.id not in texts]:
        texts |= load(user, missing, shown)
    return [texts[key.id] for key in keys if key.id in texts]


def get_many_json(user: Any, keys: Sequence[AgentKey], shown: str) -> list[str]:
    """Each agent as JSON text."""
    return representation.agents_json(get_many(user, keys, shown))


def load(user: Any, agent_ids: list[str], shown: str) -> dict[str, AgentText]:
    """Those of the agents that the caller may see, by id."""
    variant = (CallerKind.of(user), shown)
    found = {}
    for columns in TEXT_QUERY(variant, ids=json.dumps(agent_ids), **caller_params(user)):
        row = AgentRow(*columns)
        found[row.id] = now = AgentText.of(row)
        _texts.set((shown, AgentKey(row.id, row.row_key, row.revision)), now)
    return found


def _these(variant: tuple[CallerKind, str], ids: str, **caller: Any) -> Any:
    kind, shown = variant
    return representation.agent_rows(
        Agent.objects.for_user(placeholder_caller(kind, **caller)).with_ids_json(ids).order_by(), shown
    )


TEXT_QUERY = CompiledQuery(_these, ids=str, **CALLER_PARAMS)
