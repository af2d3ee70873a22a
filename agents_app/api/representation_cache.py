"""A cache of agents as JSON text, for lists. A single agent is read with everything in one query."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

from access_app.caller_params import CALLER_PARAMS, CallerKind, caller_params, placeholder_caller
from agentcms.cache import SizeLimitedCache
from agentcms.db.compiled_query import CompiledQuery
from agents_app.api import representation
from agents_app.api.representation import AgentRow, AgentText
from agents_app.models import Agent

CHARACTERS = 8_000_000  # some thousands of agents


class AgentKey(NamedTuple):
    """What an agent is at a revision never changes; an id that was deleted and made again has another row key."""

    id: str
    row_key: str
    revision: int

    @classmethod
    def of(cls, told: AgentText) -> Self:
        return cls(told.id, told.row_key, told.revision)


# By how it is shown, and its id.
_told: SizeLimitedCache[AgentText] = SizeLimitedCache(CHARACTERS)


def get_many(user: Any, keys: Sequence[AgentKey], shown: str) -> list[AgentText]:
    """What there is to say of each agent; one query where this process has not told it of all of them before.

    An agent that changed or went since its key was read is shown as it is now, or left out.
    """
    found = {key.id: told for key in keys if (told := _told.get((shown, key.id))) and AgentKey.of(told) == key}
    if missing := [key.id for key in keys if key.id not in found]:
        found |= load(user, missing, shown)
    return [found[key.id] for key in keys if key.id in found]


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
        _told.keep((shown, row.id), now, len(now.text) + len(now.references))
    return found


def _these(variant: tuple[CallerKind, str], ids: str, **caller: Any) -> Any:
    kind, shown = variant
    return representation.agent_rows(
        Agent.objects.for_user(placeholder_caller(kind, **caller)).with_ids_json(ids).order_by(), shown
    )


TEXT_QUERY = CompiledQuery(_these, ids=str, **CALLER_PARAMS)
