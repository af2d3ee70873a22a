"""The status of agents: the live version, the draft and missing references."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Exists, OuterRef, QuerySet, Subquery

from agents_app.configuration.references import MissingReference, find_missing_references
from agents_app.models import Agent
from versions_app.models import Activation, AgentVersion
from versions_app.models.version import get_head_version


class Draft(NamedTuple):
    """A draft: how many versions it has, the version it is based on, and whether another was published since."""

    ahead: int
    based_on: int | None
    live_changed: bool


class DraftStep(NamedTuple):
    """A version on the path from a draft down to the version it is based on."""

    based_on: int | None
    created_at: datetime
    was_live: bool


class AgentStatus(NamedTuple):
    """The content of the status chips."""

    live: int | None
    ahead: int
    broken: bool
    archived: bool


def agent_status(agent: Agent, warnings: Collection[MissingReference], draft: Draft | None) -> AgentStatus:
    live = agent.active_version
    ahead, is_archived = draft.ahead if draft else 0, agent.archived_at is not None
    return AgentStatus(live.version_number if live else None, ahead, bool(warnings), is_archived)


def find_drafts(agents: Iterable[Agent]) -> dict[str, Draft]:
    """Return the drafts of these agents by agent ID, with two queries if there are any."""
    with_draft = {agent.pk: agent for agent in agents if agent.has_draft}
    if not with_draft:
        return {}
    steps: dict[str, dict[int, DraftStep]] = {pk: {} for pk in with_draft}
    was_live = Exists(Activation.objects.filter(to_version_id=OuterRef("pk")))
    versions = AgentVersion.objects.filter(agent__in=[*with_draft]).annotate(was_live=was_live)
    columns = ("agent_id", "version_number", "based_on", "created_at", "was_live")
    for pk, number, based_on, created_at, was_live in versions.values_list(*columns):
        steps[pk][number] = DraftStep(based_on, created_at, was_live)
    published = (
        Agent.objects.filter(pk__in=[*with_draft])
        .order_by()
        .values_list("pk", Subquery(latest_activation("created_at")))
    )
    return {pk: build_draft(get_head_version(with_draft[pk]), steps[pk], time) for pk, time in published}


def build_draft(head: AgentVersion, steps: dict[int, DraftStep], published_at: datetime | None) -> Draft:
    """Follow the `based_on` links from the head down to a version that was once live."""
    number, count, started_at = head.version_number, 0, head.created_at
    while number in steps and not steps[number].was_live:
        count += 1
        below, started_at, _ = steps.pop(number)  # each once: a fixture may have a version that is based on itself
        if below is None:
            break
        number = below
    # At least one version: a head that was live is a draft again once an older version is published.
    return Draft(max(1, count), number if count else None, published_at is not None and published_at > started_at)


def last_changed_by(agents: Sequence[Agent]) -> dict[str, str | None]:
    """Return who changed each agent last, with at most one query. Blank is the system.

    None for a change that leaves no record of who made it, such as one of the owner or a discarded draft.
    """
    heads = {agent.pk: get_head_version(agent) for agent in agents}
    records = {pk: (head.created_at, head.author_name) for pk, head in heads.items()}
    moved = [agent.pk for agent in agents if agent.updated_at > heads[agent.pk].created_at]
    if moved:
        newest = Agent.objects.filter(pk__in=moved).order_by().values(newest=Subquery(latest_activation("pk")))
        activations = Activation.objects.filter(pk__in=newest).values_list("agent_id", "author_name", "created_at")
        records |= {pk: (time, name) for pk, name, time in activations if time > heads[pk].created_at}
    return {agent.pk: author_of_last_change(agent, *records[agent.pk]) for agent in agents}


def author_of_last_change(agent: Agent, recorded_at: datetime, author_name: str) -> str | None:
    """Return who changed an agent last. The newest record of a save or a publication has a time and an author."""
    if agent.archived_at is not None:  # nothing changes while it is archived
        return agent.archived_by_name
    # A save or a publication sets `updated_at` to the time of its record.
    return author_name if agent.updated_at <= recorded_at else None


def latest_activation(column: str) -> QuerySet[Activation, Any]:
    """Return the queryset of a column of the latest activation, for a subquery over agents."""
    latest: QuerySet[Activation, Any]
    latest = Activation.objects.filter(agent=OuterRef("pk")).order_by("-pk").values(column)[:1]
    return latest


def find_warnings(agents: Iterable[Agent]) -> dict[str, list[MissingReference]]:
    """Return the missing references of each agent's head, with one query if any has sub-agents."""
    heads = {agent: get_head_version(agent) for agent in agents}
    sub_agents = {agent.pk: (agent.owner_id, head.references.get("agents", ())) for agent, head in heads.items()}
    stored = Agent.objects.stored_among(sub_agents)
    return {agent.pk: find_missing_references(head.references, stored[agent.pk]) for agent, head in heads.items()}
