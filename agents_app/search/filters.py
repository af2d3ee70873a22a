"""The filters of a list of agents."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from django.db.models import Q, TextField, Value
from django.db.models.fields.json import KT
from django.db.models.functions import Concat
from django.utils import timezone

from agents_app.models import Agent, AgentIndex, AgentQuerySet

# Periods of the last change, by the value in a URL: a label and a number of days.
UPDATED_WITHIN = {
    "1d": ("Last 24 hours", 1),
    "7d": ("Last 7 days", 7),
    "30d": ("Last 30 days", 30),
    "90d": ("Last 90 days", 90),
}
NOT_UPDATED = "old"
NOT_UPDATED_DAYS = 90


@dataclass(frozen=True)
class AgentFilters:
    """The filters of a list. A blank one is not applied. The owner is None for all owners, because Shared is blank.

    `model` is a provider, or a provider and a model: `openai` or `openai/gpt-5.2`. `author` is the username of a
    person who made a version. An agent must have all of the tags.
    """

    search: str = ""
    owner: str | None = None
    model: str = ""
    tool: str = ""
    author: str = ""
    tags: tuple[str, ...] = ()
    updated: str = ""
    first_day: date | None = None
    last_day: date | None = None

    @property
    def is_active(self) -> bool:
        return self != AgentFilters()

    def apply(self, agents: AgentQuerySet) -> AgentQuerySet:
        """Return the agents whose heads match."""
        heads = AgentIndex.objects.filter(is_head=True)
        if self.search:
            agents = agents.filter(pk__in=heads.search(self.search).values("agent"))
        for tag in self.tags:
            agents = agents.filter(pk__in=heads.with_tag(tag).values("agent"))
        if self.owner is not None:
            agents = agents.filter(owner_id=self.owner)
        if self.model:
            # Not divided: the keys of providers, too, may have slashes.
            value = Concat(KT("model__provider"), Value("/"), KT("model__name"), output_field=TextField())
            agents = agents.alias(model_value=value)
            agents = agents.filter(Q(model__provider=self.model) | Q(model_value=self.model))
        if self.tool:
            agents = agents.with_tool(self.tool)
        if self.author:
            # In a subquery: a join would give an agent once for each of its versions.
            authored = Agent.objects.filter(versions__author__username=self.author)
            agents = agents.filter(pk__in=authored.order_by().values("pk"))
        return self._apply_dates(agents)

    def _apply_dates(self, agents: AgentQuerySet) -> AgentQuerySet:
        now = timezone.now()
        if self.updated in UPDATED_WITHIN:
            agents = agents.filter(updated_at__gte=now - timedelta(days=UPDATED_WITHIN[self.updated][1]))
        elif self.updated == NOT_UPDATED:
            agents = agents.filter(updated_at__lt=now - timedelta(days=NOT_UPDATED_DAYS))
        if self.first_day:
            agents = agents.filter(updated_at__gte=start_of_day(self.first_day))
        if self.last_day:
            agents = agents.filter(updated_at__lt=start_of_day(self.last_day) + timedelta(days=1))
        return agents


def start_of_day(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min))
