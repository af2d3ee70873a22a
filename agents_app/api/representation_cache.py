"""Agents as JSON text: of what an agent is at a revision, a process keeps what it told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

from access_app.caller_params import CALLER, CallerKind, asked_by, stand_in
from agentcms.cache import Kept
from agentcms.db.compiled_query import Prepared
from agents_app.api import representation
from agents_app.api.representation import Row, Told
from agents_app.models import Agent

CHARACTERS = 8_000_000  # some thousands of agents


class Key(NamedTuple):
    """What an agent is at a revision never changes; an id that was deleted and made again has another row key."""

    id: str
    row_key: str
    revision: int

    @classmethod
    def of(cls, told: Told) -> Self:
        return cls(told.id, told.row_key, told.revision)

    @property
    def etag(self) -> str:
        return representation.etag(self.row_key, self.revision)


# By how it is shown, and its id.
_told: Kept[Told] = Kept(CHARACTERS)


def one(user: Any, agent_id: str, shown: str) -> Key | Told | None:
    """What an agent is now, if the caller may see it.

    With all there is to say of it, where this process has told nothing of it: among very many agents that is the rule.
    Where nothing is found both are asked, or the time would say that others are told of the agent.
    """
    if _told.get((shown, agent_id)) is None:
        return read(user, [agent_id], shown).get(agent_id) or key(user, agent_id)
    return key(user, agent_id) or read(user, [agent_id], shown).get(agent_id)


def key(user: Any, agent_id: str) -> Key | None:
    found = ONE(CallerKind.of(user), agent_id=agent_id, **asked_by(user))
    return Key(*found[0]) if found else None


def told(user: Any, keys: Sequence[Key], shown: str) -> list[Told]:
    """What there is to say of each agent; one query where this process has not told it of all of them before.

    An agent that changed or went since its key was read is shown as it is now, or left out.
    """
    found = {key.id: told for key in keys if (told := _told.get((shown, key.id))) and Key.of(told) == key}
    if missing := [key.id for key in keys if key.id not in found]:
        found |= read(user, missing, shown)
    return [found[key.id] for key in keys if key.id in found]


def texts(user: Any, keys: Sequence[Key], shown: str) -> list[str]:
    """Each agent as JSON text."""
    return representation.texts(told(user, keys, shown))


def read(user: Any, agent_ids: list[str], shown: str) -> dict[str, Told]:
    """Those of the agents that the caller may see, by id."""
    variant = (CallerKind.of(user), shown)
    found = {}
    for columns in THESE(variant, ids=json.dumps(agent_ids), **asked_by(user)):
        row = Row(*columns)
        found[row.id] = now = Told.of(row)
        _told.keep((shown, row.id), now, len(now.text) + len(now.references))
    return found


def _one(kind: CallerKind, agent_id: str, **caller: Any) -> Any:
    agents = Agent.objects.for_user(stand_in(kind, **caller)).filter(pk=agent_id, active_version__isnull=False)
    return agents.order_by().values_list(*Key._fields)


def _these(variant: tuple[CallerKind, str], ids: str, **caller: Any) -> Any:
    kind, shown = variant
    return representation.rows(Agent.objects.for_user(stand_in(kind, **caller)).among_json(ids).order_by(), shown)


ONE = Prepared(_one, agent_id=str, **CALLER)
THESE = Prepared(_these, ids=str, **CALLER)
