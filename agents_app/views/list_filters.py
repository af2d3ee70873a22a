"""The state of the agent list in its URL: search, filters, tab, sorting and page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import cached_property
from typing import Any, NamedTuple

from django.core.paginator import Page, Paginator
from django.db.models import Count, Q
from django.http import QueryDict
from django.urls import reverse
from django.utils.dateparse import parse_date

from access_app.role import SHARED_LABEL
from agentcms.web.list_state import Chip, ListState, SortChoice, archived_matches_note
from agents_app.configuration.references import find_entry
from agents_app.models import AgentQuerySet
from agents_app.registry import Kind, registry
from agents_app.search.filters import NOT_UPDATED, NOT_UPDATED_DAYS, UPDATED_WITHIN, AgentFilters
from agents_app.search.tokenizer import MAX_SEARCH_LENGTH
from agents_app.views.list_rows import AgentListRow, build_rows, ids_with_missing_references, with_draft

PER_PAGE = 50
SORTS = {
    "name": ("name", "id"),
    "-name": ("-name", "-id"),
    "updated": ("updated_at", "id"),
    "-updated": ("-updated_at", "id"),
}
SORT_LABELS = {
    "-updated": "Newest change",
    "updated": "Oldest change",
    "name": "Name, A to Z",
    "-name": "Name, Z to A",
}
DEFAULT_SORT = "-updated"
TABS = {"": "All", "draft": "Drafts", "broken": "Broken", "archived": "Archived"}
UPDATED_LABELS = {key: label for key, (label, _) in UPDATED_WITHIN.items()} | {
    NOT_UPDATED: f"More than {NOT_UPDATED_DAYS} days ago"
}
ANY_OWNER = "*"  # in the filter form, because the blank owner is Shared
OPEN_PANEL = "filters"
MAX_FILTER_TAGS = 10
MAX_FILTER_LENGTH = 256
FILTER_YEARS = range(2000, 2200)

Params = Mapping[str, str | Sequence[str] | None]


class Tab(NamedTuple):
    """A tab of the list with the number of its agents that match the filters."""

    label: str
    href: str
    number: int
    is_current: bool


class AgentListState(ListState):
    """The state of the list, read from its URL. Unknown parameters and values are ignored."""

    def __init__(self, agents: AgentQuerySet, params: QueryDict) -> None:
        # A row without a history, such as one of a fixture, has no status to show.
        self.agents = agents.filter(head_version__isnull=False)
        self.params = params
        state, sort = str(params.get("status")), str(params.get("sort"))
        self.state = state if state in TABS else ""
        self.sort = sort if sort in SORTS else DEFAULT_SORT
        self.panel_is_open = params.get("panel") == OPEN_PANEL
        self.filters = parse_filters(params)

    @property
    def q(self) -> str:
        return self.filters.search

    @property
    def is_filtered(self) -> bool:
        return self.filters.is_active

    # --- the agents

    @cached_property
    def filtered(self) -> AgentQuerySet:
        """The agents of all tabs."""
        return self.filters.apply(self.agents)

    @cached_property
    def matches(self) -> AgentQuerySet:
        """The agents of the current tab."""
        if self.state == "archived":
            return self.filtered.archived()
        agents = self.filtered.without_archived()
        if self.state == "draft":
            return with_draft(agents)
        return agents.with_ids(self.broken_ids) if self.state == "broken" else agents

    @cached_property
    def broken_ids(self) -> list[str]:
        # In Python, for all agents: the database does not know what code registers.
        return ids_with_missing_references(self.filtered.without_archived())

    @cached_property
    def counts(self) -> dict[str, int]:
        """The number of agents in each tab."""
        is_archived = Q(archived_at__isnull=False)
        totals = self.filtered.order_by().aggregate(
            current=Count("pk", filter=~is_archived), archived=Count("pk", filter=is_archived)
        )
        return {
            "": totals["current"],
            "draft": with_draft(self.filtered.without_archived()).count(),
            "broken": len(self.broken_ids),
            "archived": totals["archived"],
        }

    @property
    def archived_note(self) -> str:
        """The sentence that archived agents match, which are in another tab, or a blank text if others match too."""
        if self.state or not self.is_filtered or self.counts[""]:
            return ""
        return archived_matches_note(self.counts["archived"], "agent")

    @property
    def archived_url(self) -> str:
        """The URL of the archived agents that match the same filters."""
        return self.url(status="archived")

    @property
    def tabs(self) -> list[Tab]:
        return [
            Tab(label, self.url(status=key or None), self.counts[key], key == self.state)
            for key, label in TABS.items()
        ]

    @cached_property
    def page(self) -> Page[Any]:
        paginator = Paginator(self.matches.order_by(*SORTS[self.sort]), PER_PAGE)
        # The tabs have counted them already.
        paginator.count = self.counts[self.state]
        return paginator.get_page(self.params.get("page"))

    @cached_property
    def rows(self) -> list[AgentListRow]:
        # The IDs first: with the columns of a row, the database would sort long texts.
        agents: Any = self.page.object_list
        return build_rows(self.agents, [agent.pk for agent in agents.only("pk")], self.q)

    # --- its URLs

    def url(self, **changes: str | Sequence[str] | None) -> str:
        """Return the query string with the changes applied, at the first page; None removes a parameter."""
        return build_list_url({**self.current_params, **changes})

    @cached_property
    def current_params(self) -> Params:
        """The parameters of the URL of this state. None and empty ones are left out."""
        filters = self.filters
        return {
            "q": filters.search or None,
            "status": self.state or None,
            "model": filters.model or None,
            "tool": filters.tool or None,
            "owner": filters.owner,
            "author": filters.author or None,
            "tag": filters.tags,
            "updated": filters.updated or None,
            "from": filters.first_day.isoformat() if filters.first_day else None,
            "to": filters.last_day.isoformat() if filters.last_day else None,
            "sort": None if self.sort == DEFAULT_SORT else self.sort,
            "panel": OPEN_PANEL if self.panel_is_open else None,
        }

    @property
    def address(self) -> str:
        """The shortest URL of the list in this state, for the browser's address bar."""
        return f"{reverse('agents:list')}{self.url() if self.query else ''}"

    @property
    def has_blank_params(self) -> bool:
        """True if the URL has blank parameters, as a form without scripts sends them. A blank owner is Shared."""
        lists = ((name, value) for name, values in self.params.lists() for value in values)
        return any(value == (ANY_OWNER if name == "owner" else "") for name, value in lists)

    @property
    def clear_url(self) -> str:
        """The URL without filters, with the same tab and sorting."""
        return build_list_url({name: self.current_params[name] for name in ("status", "sort", "panel")})

    @property
    def hidden_params(self) -> list[tuple[str, str]]:
        """The parameters that no field of the search form has."""
        names = {"status", "sort", "tag"} if self.panel_is_open else self.current_params.keys() - {"q"}
        query = QueryDict(build_list_url({name: self.current_params[name] for name in sorted(names)})[1:])
        panel = [("panel", OPEN_PANEL)] if self.panel_is_open else []
        return panel + [(name, value) for name, values in query.lists() for value in values]

    @property
    def chips(self) -> list[Chip]:
        return [*self._chips()]

    def _chips(self) -> Iterator[Chip]:
        filters = self.filters
        if filters.search:
            yield Chip("Search", filters.search, self.url(q=None))
        if filters.owner is not None:
            yield Chip("Team", filters.owner or SHARED_LABEL, self.url(owner=None))
        if filters.model:
            yield Chip("Model", model_title(filters.model), self.url(model=None))
        if filters.tool:
            yield Chip("Tool", tool_title(filters.tool), self.url(tool=None))
        if filters.author:
            yield Chip("Author", filters.author, self.url(author=None))
        for tag in filters.tags:
            yield Chip("Tag", tag, self.url(tag=[other for other in filters.tags if other != tag]))
        if filters.updated:
            yield Chip("Updated", UPDATED_LABELS[filters.updated].lower(), self.url(updated=None))
        if filters.first_day:
            yield Chip("Updated from", filters.first_day.isoformat(), self.url(**{"from": None}))
        if filters.last_day:
            yield Chip("Updated to", filters.last_day.isoformat(), self.url(to=None))

    @property
    def tag_query(self) -> str:
        """The query string to which a tag is appended, for the links of the tags in the rows."""
        query = self.query
        return f"?{query}&tag=" if query else "?tag="

    @property
    def sorts(self) -> Mapping[str, dict[str, str]]:
        """Return for each sortable column the URL that sorts by it, and its current direction."""
        return {
            name: {
                "href": self.url(sort=f"-{name}" if self.sort == name else name),
                "now": {name: "ascending", f"-{name}": "descending"}.get(self.sort, ""),
            }
            for name in ("name", "updated")
        }

    @property
    def sort_choices(self) -> list[SortChoice]:
        """Return the orders of the list."""
        return [SortChoice(label, self.url(sort=key), key == self.sort) for key, label in SORT_LABELS.items()]


def parse_filters(params: QueryDict) -> AgentFilters:
    """Return the filters that a URL names."""
    owner, updated = params.get("owner"), params.get("updated", "")
    return AgentFilters(
        search=params.get("q", "")[:MAX_SEARCH_LENGTH].strip().replace("\0", ""),
        owner=None if owner in (None, ANY_OWNER) else clean_value(str(owner)),
        model=clean_value(params.get("model") or params.get("provider", "")),
        tool=clean_value(params.get("tool", "")),
        author=clean_value(params.get("author", "")),
        tags=tuple(dict.fromkeys(filter(None, map(clean_value, params.getlist("tag")))))[:MAX_FILTER_TAGS],
        updated=updated if updated in UPDATED_LABELS else "",
        first_day=parse_day(params.get("from", "")),
        last_day=parse_day(params.get("to", "")),
    )


def clean_value(text: str) -> str:
    # PostgreSQL refuses a NUL in a text.
    return text.replace("\0", "")[:MAX_FILTER_LENGTH]


def parse_day(text: str) -> date | None:
    """Return the day of an ISO date, or None for any other text and for a year that no agent has."""
    try:
        day = parse_date(text)
    except ValueError:  # the 31st of February
        return None
    return day if day is not None and day.year in FILTER_YEARS else None


def build_list_url(params: Params) -> str:
    query = QueryDict(mutable=True)
    for name, value in params.items():
        if value is not None:
            query.setlist(name, [value] if isinstance(value, str) else list(value))
    return f"?{query.urlencode()}"


def model_title(model: str) -> str:
    """Return the displayed name of a provider, or of a provider and a model: `OpenAI` or `OpenAI / gpt-5.2`.

    That of an unknown provider is returned as it is: its slash may belong to either of them.
    """
    provider, _, name = model.partition("/")
    entry = registry.get(Kind.MODEL_PROVIDER, provider)
    return " / ".join(filter(None, [entry.title, name])) if entry else model


def tool_title(key: str) -> str:
    entry = find_entry(Kind.TOOL, key)
    return entry.title if entry else key
