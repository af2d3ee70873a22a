"""How an agent stands, in a few words: what is live, how far a draft is ahead, and what is broken."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Exists, OuterRef, Subquery

from agents_app.configuration.references import MissingReference, find_missing_references
from agents_app.models import Agent


class Draft(NamedTuple):
    """A head that differs from live: how many versions it took, on top of which, and whether live moved since."""

    ahead: int
    began_on: int | None
    live_moved: bool


class DraftStep(NamedTuple):
    """A version as the way down from a draft sees it."""

    based_on: int | None
    created_at: datetime
    was_live: bool


class Status(NamedTuple):
    """What a status chip says."""

    live: int | None
    ahead: int
    broken: bool


def agent_status(agent: Agent, warned: Collection[MissingReference], draft: Draft | None) -> Status:
    live: Any = agent.active_version
    return Status(live.version_number if live else None, draft.ahead if draft else 0, bool(warned))


def find_drafts(agents: Iterable[Agent]) -> dict[str, Draft]:
    """The drafts among these agents, by agent; two queries where there are any."""
    drafting = {agent.pk: agent for agent in agents if agent.has_draft}
    if not drafting:
        return {}
    steps: dict[str, dict[int, DraftStep]] = {pk: {} for pk in drafting}
    was_live = Exists(model_of("activations").filter(to_version_id=OuterRef("pk")))
    versions = history_rows("versions", drafting).annotate(was_live=was_live)
    for pk, number, *step in versions.values_list("agent_id", "version_number", "based_on", "created_at", "was_live"):
        steps[pk][number] = DraftStep(*step)
    moved = (
        Agent.objects.filter(pk__in=[*drafting])
        .order_by()
        .values_list("pk", Subquery(latest_activation("created_at")))
    )
    return {pk: build_draft(drafting[pk], steps[pk], at) for pk, at in moved if pk in drafting}


def build_draft(agent: Any, steps: dict[int, DraftStep], moved: datetime | None) -> Draft:
    """Follow what each version is based on, from the head down to one that was live once."""
    number, count, began = agent.head_version.version_number, 0, agent.head_version.created_at
    while number in steps and not steps[number].was_live:
        count += 1
        below, began, _ = steps[number]
        if below is None:
            break
        number = below
    return Draft(max(1, count), number if count else None, moved is not None and moved > began)


def last_changed_by(agents: Sequence[Agent]) -> dict[str, str]:
    """Who changed each agent last, by saving it or by moving live; one query where live moved after the last save."""
    saved: dict[str, Any] = {agent.pk: agent.head_version for agent in agents}
    movers = {pk: head.author_name for pk, head in saved.items()}
    moved = [agent.pk for agent in agents if agent.updated_at > saved[agent.pk].created_at]
    if moved:
        newest = Agent.objects.filter(pk__in=moved).order_by().values(newest=Subquery(latest_activation("pk")))
        told = model_of("activations").filter(pk__in=newest).values_list("agent_id", "author_name", "created_at")
        movers |= {pk: name for pk, name, at in told if at > saved[pk].created_at}
    return movers


def history_rows(name: str, agents: Collection[str]) -> Any:
    """The rows of the history that belong to these agents; this app knows the relation, not the model."""
    return model_of(name).filter(agent__in=list(agents))


def latest_activation(column: str) -> Any:
    """A column of an agent's newest move of live, as a subquery: there may be any number of them."""
    return model_of("activations").filter(agent=OuterRef("pk")).order_by("-pk").values(column)[:1]


def model_of(name: str) -> Any:
    model: Any = Agent._meta.get_field(name).related_model
    return model.objects.all()


def find_warnings(agents: Iterable[Agent]) -> dict[str, list[MissingReference]]:
    """What each agent names and nobody registered, by its head; one query where any names sub-agents."""
    heads: dict[Agent, Any] = {agent: agent.head_version for agent in agents}
    named = {agent.pk: (agent.owner_id, head.references.get("agents", ())) for agent, head in heads.items()}
    usable = Agent.objects.usable_among(named)
    return {agent.pk: find_missing_references(head.references, usable[agent.pk]) for agent, head in heads.items()}
