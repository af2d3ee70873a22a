"""The agents of a page of a list as JSON text: of what an agent is at a revision, a process keeps what it told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from access_app.roles import Role, StandIn, may_all
from agentcms.kept import Kept
from agentcms.prepared import Prepared
from agents_app import answers
from agents_app.answers import Row, Told
from agents_app.models import Agent

CHARACTERS = 8_000_000  # some thousands of agents


class Key(NamedTuple):
    """What an agent is at a revision never changes; an id that was deleted and made again has another row key."""

    id: str
    row_key: str
    revision: int


_told: Kept[Told] = Kept(CHARACTERS)


def texts(user: Any, keys: Sequence[Key], shown: str) -> list[str]:
    """Each agent as JSON text; one more query where this process has not told all of them before.

    An agent that changed or went since its key was read is shown as it is now, or left out.
    """
    found = {key.id: told for key in keys if (told := _told.get((shown, *key)))}
    if missing := [key.id for key in keys if key.id not in found]:
        found |= read(user, missing, shown)
    return answers.texts([found[key.id] for key in keys if key.id in found])


def read(user: Any, agent_ids: list[str], shown: str) -> dict[str, Told]:
    """Those of the agents that the caller may see, by id."""
    variant = (may_all(user, Role.VIEWER), shown)
    found = {}
    for columns in THESE(variant, ids=json.dumps(agent_ids), user_id=user.pk):
        row = Row(*columns)
        found[row.id] = told = Told.of(row)
        _told.keep((shown, row.id, row.row_key, row.revision), told, len(told.text) + len(told.references))
    return found


def _these(variant: Any, ids: str, user_id: int) -> Any:
    everything, shown = variant
    caller: Any = StandIn(everything, user_id)
    return answers.rows(Agent.objects.for_user(caller).among_json(ids).order_by(), shown)


THESE = Prepared(_these, ids=str, user_id=int)
