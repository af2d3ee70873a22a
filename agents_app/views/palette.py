"""The command palette: a search over agents, their tabs, and the other pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from django.contrib.auth.decorators import login_required
from django.db.models import Case, IntegerField, Value, When
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from access_app.permissions import has_role_somewhere
from access_app.role import Role
from agentcms.db.text_conditions import begins_with_text, contains_text
from agentcms.web.dialogs import is_htmx, vary_on_htmx
from agents_app.models import Agent, AgentIndex, AgentQuerySet
from agents_app.search.tokenizer import MAX_SEARCH_LENGTH
from agents_app.views.access import visible_agents

MAX_MATCHES = 8
# Fewer: each of these agents has a line for every tab that the search names.
MAX_MATCHES_WITH_TABS = 3
EDITORS, STAFF = "editors", "staff"


class Destination(NamedTuple):
    """A page, or a tab of an agent. `words` are other words for it, `audience` those who may open it."""

    label: str
    url_name: str
    icon: str
    words: str = ""
    audience: str = ""


class PaletteEntry(NamedTuple):
    """A line of the palette. The note says what it belongs to."""

    label: str
    note: str
    href: str
    icon: str


class PaletteGroup(NamedTuple):
    label: str
    entries: Sequence[PaletteEntry]


AGENT_TABS = (
    Destination("Edit", "agents:edit", "edit", "view editor instructions"),
    Destination("Playground", "runs:playground", "play", "try test"),
    Destination("History", "versions:list", "history", "versions"),
    Destination("Live history", "versions:live_history", "live", "activations published"),
    Destination("Runs", "runs:of_agent", "list"),
    Destination("Usage", "runs:usage", "chart", "figures cost tokens errors"),
    Destination("Quality", "evals:quality", "check", "scores experiments gates evaluations"),
    Destination("Used by", "agents:used_by", "swap", "dependents sub-agents"),
)
PAGES = (
    Destination("Agents", "agents:list", "list", "list home"),
    Destination("New agent", "agents:create", "plus", "create add", EDITORS),
    Destination("Runs", "runs:list", "play"),
    Destination("Approvals", "runs:approvals", "bell", "waiting decide decisions inbox questions"),
    Destination("Conversations", "threads:list", "list", "threads memory messages"),
    Destination("Background tasks", "runs:background_tasks", "history", "tools long progress"),
    Destination("Knowledge", "knowledge:list", "search", "documents bases passages"),
    Destination("Datasets", "evals:datasets", "list", "questions items evaluations"),
    Destination("Experiments", "evals:experiments", "compare", "results comparisons evaluations"),
    Destination("Scorers", "evals:scorers", "check", "judges scores evaluations"),
    Destination("Import and export", "exchange:list", "swap", "imports exports upload download jobs"),
    Destination("Trash", "agents:trash", "trash", "deleted agents restore"),
    Destination("API keys", "account:keys", "key", "tokens"),
    Destination("Team", "account:team", "person", "members roles"),
    Destination("Password", "account:password", "lock", "account"),
    Destination("Notices", "runs:notices", "bell", "account e-mail approvals"),
    Destination("API reference", "api-docs", "info", "docs documentation"),
    Destination("Administration", "admin:index", "settings", "admin", STAFF),
)


@require_safe
@login_required
def palette(request: HttpRequest) -> HttpResponse:
    """Show the matches of a search: as options for the dialog, or as a page with links."""
    # PostgreSQL refuses a NUL in a text.
    query = request.GET.get("q", "")[:MAX_SEARCH_LENGTH].strip().replace("\0", "")
    current = request.GET.get("current", "").replace("\0", "")
    groups = [group for group in find_groups(request, query, current) if group.entries]
    context = {
        "nav": "agents",
        "q": query,
        "current_agent": current,
        "groups": groups,
        "count": sum(len(group.entries) for group in groups),
    }
    template = "agents/_palette_options.html" if is_htmx(request) else "agents/palette.html"
    response = render(request, template, context)
    vary_on_htmx(response)
    return response


def find_groups(request: HttpRequest, query: str, current: str) -> Iterator[PaletteGroup]:
    """Yield the tabs of the current agent, the agents, the tabs that a search names, and the pages."""
    if current and (agent := visible_agents(request).filter(pk=current).only("id", "name").first()):
        tabs = [tab for tab in AGENT_TABS if matches_query(tab, query)]
        yield PaletteGroup(agent.name, [tab_entry(tab, agent, note="") for tab in tabs])
    # The last word may be the name of a tab, as in "triage history".
    words, _, last = query.rpartition(" ")
    named_tabs = [tab for tab in AGENT_TABS if words.strip() and matches_query(tab, last)]
    if named_tabs:
        agents = find_agents(request, words)[:MAX_MATCHES_WITH_TABS]
        yield PaletteGroup("Tabs", [tab_entry(tab, agent, agent.name) for agent in agents for tab in named_tabs])
    agents = find_agents(request, query)
    yield PaletteGroup("Agents" if query else "Newest changes", [agent_entry(agent) for agent in agents])
    pages = [page for page in PAGES if matches_query(page, query) and is_for_user(page, request)]
    yield PaletteGroup("Pages", [PaletteEntry(page.label, "", reverse(page.url_name), page.icon) for page in pages])


def find_agents(request: HttpRequest, query: str) -> AgentQuerySet:
    """Return the agents that match, those with a matching name or ID first. A blank query has the newest changes."""
    agents = visible_agents(request).without_archived().filter(head_version__isnull=False)
    if query:
        heads = AgentIndex.objects.filter(is_head=True).search(query)
        agents = agents.filter(pk__in=heads.values("agent"))
    # The index also finds words of the instructions, which are rarely what somebody wants to go to.
    by_name = begins_with_text("name", query) | begins_with_text("pk", query)
    in_name = contains_text("name", query) | contains_text("pk", query)
    rank = Case(When(by_name, Value(0)), When(in_name, Value(1)), default=Value(2), output_field=IntegerField())
    return agents.order_by(rank, "-updated_at", "pk").only("id", "name", "owner_id")[:MAX_MATCHES]


def matches_query(destination: Destination, query: str) -> bool:
    """Return whether each word of a query begins a word of the destination."""
    words = f"{destination.label} {destination.words}".lower().split()
    return all(any(word.startswith(part) for word in words) for part in query.lower().split())


def is_for_user(page: Destination, request: HttpRequest) -> bool:
    if page.audience == STAFF:
        return bool(request.user.is_staff)
    return not page.audience or has_role_somewhere(request.user, Role.EDITOR)


def tab_entry(tab: Destination, agent: Agent, note: str) -> PaletteEntry:
    return PaletteEntry(tab.label, note, reverse(tab.url_name, args=[agent.pk]), tab.icon)


def agent_entry(agent: Agent) -> PaletteEntry:
    return PaletteEntry(agent.name, agent.pk, reverse("agents:edit", args=[agent.pk]), "edit")
