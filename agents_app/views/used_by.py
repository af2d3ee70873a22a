"""The agents that use an agent as a sub-agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from agents_app.configuration.sub_agents import find_dependents
from agents_app.models import Agent, AgentIndex
from agents_app.views.access import get_agent
from agents_app.views.agent_header import AgentTab, header_context

DEPENDENTS_PER_PAGE = 50


class DependentRow(NamedTuple):
    """An agent that uses another one: in its live version, in its draft, or in both."""

    agent: Agent
    in_live: bool
    in_draft: bool


@require_safe
@login_required
def used_by(request: HttpRequest, agent_id: str) -> HttpResponse:
    """List the dependents that the user may see, and count the others."""
    agent = get_agent(request, agent_id)
    dependents = find_dependents(agent)
    visible = dependents.for_user(request.user).only("id", "name", "owner_id", "archived_at")
    page = Paginator(visible.order_by("name", "pk"), DEPENDENTS_PER_PAGE).get_page(request.GET.get("page"))
    context = {
        **header_context(request, agent, AgentTab.USED_BY),
        "page": page,
        "rows": build_dependent_rows(agent, list(page.object_list)),
        "hidden": dependents.count() - page.paginator.count,
    }
    return render(request, "agents/used_by.html", context)


def build_dependent_rows(agent: Agent, dependents: Sequence[Agent]) -> list[DependentRow]:
    """Return the rows of these dependents, with one query."""
    states = AgentIndex.objects.referencing(agent.pk).filter(agent__in=dependents)
    flags = list(states.values_list("agent_id", "is_live", "is_head"))
    in_live = {pk for pk, is_live, _ in flags if is_live}
    # Without a draft, one row is both, and counts as live.
    in_draft = {pk for pk, is_live, is_head in flags if is_head and not is_live}
    return [DependentRow(dependent, dependent.pk in in_live, dependent.pk in in_draft) for dependent in dependents]
