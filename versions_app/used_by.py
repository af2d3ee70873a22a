"""Which agents use an agent as a sub-agent."""

from __future__ import annotations

import json
from typing import NamedTuple

from django.db.models import Q, TextField
from django.db.models.functions import Cast

from agents_app.models import Agent, AgentQuerySet


class Users(NamedTuple):
    """The agents that use one, in so far as the caller may see them, and how many more there are."""

    agents: list[Agent]
    hidden: int

    def __bool__(self) -> bool:
        return bool(self.agents or self.hidden)


def used_by(agent: Agent, visible: AgentQuerySet) -> Users:
    """The agents whose live version names this one."""
    # As text: SQLite cannot look inside a JSON list. A database may spell letters beyond ASCII either way.
    spelled = {json.dumps(agent.pk), json.dumps(agent.pk, ensure_ascii=False)}
    maybe = Q()
    for text in spelled:
        maybe |= Q(named__contains=text)
    named = Agent.objects.annotate(named=Cast("active_version__references", TextField())).filter(maybe)
    rows = named.exclude(pk=agent.pk).values_list("pk", "active_version__references")
    ids = [pk for pk, references in rows if agent.pk in references.get("agents", ())]
    seen = [*visible.filter(pk__in=ids).order_by("name", "pk").only("pk", "name")] if ids else []
    return Users(seen, len(ids) - len(seen))
