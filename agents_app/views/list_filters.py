"""Search, filters, sorting and pagination of the agent list."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from django.core.paginator import Page, Paginator
from django.db.models import F, TextField
from django.db.models.functions import Cast
from django.http import QueryDict

from access_app.role import SHARED_LABEL
from agentcms.web.list_state import Chip, ListState
from agents_app.api.representation import known_agents, warnings_json
from agents_app.models import Agent, AgentIndex, AgentQuerySet
from agents_app.registry import Kind, registry
from agents_app.search.tokenizer import MAX_SEARCH_LENGTH
from agents_app.views.status import AgentStatus, agent_status, find_drafts, find_warnings, last_changed_by

PER_PAGE = 50
SORTS = {
    "name": ("name", "id"),
    "-name": ("-name", "-id"),
    "updated": ("updated_at", "id"),
    "-updated": ("-updated_at", "id"),
}
STATUS_FILTERS = {"draft": "With a draft", "broken": "Broken references", "archived": "Archived"}
SNIPPET_CONTEXT = 60  # characters on each side of a match

# Columns that the list does not show. Their texts can be long.
UNUSED_COLUMNS = (
    "active_version__snapshot_text",
    "head_version__snapshot_text",
    "default_options",
    "metadata",
    "input_processors",
    "output_processors",
    "scorers",
)


class SnippetPart(NamedTuple):
    """A part of a search snippet, marked if it matches the search."""

    text: str
    marked: bool


@dataclass(frozen=True)
class AgentListRow:
    """A row of the list."""

    agent: Agent
    status: AgentStatus
    updated_by: str
    snippet: Sequence[SnippetPart]

    @property
    def tool_count(self) -> int:
        return len(self.agent.tools) + len(self.agent.integration_tools)


class AgentListState(ListState):
    """The state of the list, read from its URL. Unknown parameters and values are ignored."""

    def __init__(self, agents: AgentQuerySet, params: QueryDict) -> None:
        self.agents = agents
        self.params = params
        self.q = params.get("q", "")[:MAX_SEARCH_LENGTH].strip().replace("\0", "")
        self.owner = params.get("owner")
        state = str(params.get("status"))
        self.state = state if state in STATUS_FILTERS else ""
        self.provider = params.get("provider", "").replace("\0", "")
        sort = str(params.get("sort"))
        self.sort = sort if sort in SORTS else "-updated"

    @property
    def is_filtered(self) -> bool:
        return bool(self.q or self.owner is not None or self.state or self.provider)

    @cached_property
    def matches(self) -> AgentQuerySet:
        agents = self.agents.filter(head_version__isnull=False)
        agents = agents.archived() if self.state == "archived" else agents.without_archived()
        if self.q:
            heads = AgentIndex.objects.filter(is_head=True)
            agents = agents.filter(pk__in=heads.search(self.q).values("agent"))
        if self.owner is not None:
            agents = agents.filter(owner_id=self.owner.replace("\0", ""))
        if self.provider:
            agents = agents.filter(model__provider=self.provider)
        if self.state == "draft":
            agents = agents.exclude(head_version__snapshot_hash=F("active_version__snapshot_hash"))
        if self.state == "broken":
            agents = agents.with_ids(ids_with_missing_references(agents))
        return agents

    @cached_property
    def page(self) -> Page[Any]:
        ordered = self.matches.order_by(*SORTS[self.sort])
        return Paginator(ordered, PER_PAGE).get_page(self.params.get("page"))

    @cached_property
    def rows(self) -> list[AgentListRow]:
        """Return the rows of the page, in a fixed number of queries."""
        page: Any = self.page.object_list
        ids = [agent.pk for agent in page.only("pk")]
        unused = UNUSED_COLUMNS if self.q else (*UNUSED_COLUMNS, "instructions")
        unordered = self.agents.filter(pk__in=ids).with_versions().defer(*unused)
        by_id = {agent.pk: agent for agent in unordered}
        agents = [by_id[pk] for pk in ids if pk in by_id]
        drafts, warnings, authors = find_drafts(agents), find_warnings(agents), last_changed_by(agents)
        return [
            AgentListRow(
                agent,
                agent_status(agent, warnings[agent.pk], drafts.get(agent.pk)),
                authors[agent.pk],
                build_snippet(agent, self.q),
            )
            for agent in agents
        ]

    # --- filters and their URLs

    @property
    def chips(self) -> list[Chip]:
        chips = []
        if self.q:
            chips.append(Chip("Search", self.q, self.url(q=None)))
        if self.owner is not None:
            chips.append(Chip("Team", self.owner or SHARED_LABEL, self.url(owner=None)))
        if self.state:
            chips.append(Chip("Status", STATUS_FILTERS[self.state], self.url(status=None)))
        if self.provider:
            chips.append(Chip("Model", self.provider, self.url(provider=None)))
        return chips

    def filter_choices(self, owners: Sequence[str]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """Return the filters that can be added: for each group a label and its choices with their URLs."""
        if not self.state:
            yield "Status", [(label, self.url(status=key)) for key, label in STATUS_FILTERS.items()]
        if self.owner is None:
            yield "Team", [(owner or SHARED_LABEL, self.url(owner=owner)) for owner in owners]
        if not self.provider:
            providers = registry.entries(Kind.MODEL_PROVIDER)
            yield "Model", [(entry.title, self.url(provider=entry.key)) for entry in providers]

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


def ids_with_missing_references(agents: AgentQuerySet) -> list[str]:
    """Return the IDs of the agents with missing references."""
    columns = agents.order_by().annotate(references=Cast("head_version__references", TextField()))
    rows: list[Any] = list(columns.values_list("id", "owner_id", "references", named=True))
    known = known_agents(rows)
    return [
        row.id for row in rows if warnings_json(row.references, registry.fingerprint, known.get(row.id, ())) != "[]"
    ]


def build_snippet(agent: Agent, text: str) -> list[SnippetPart]:
    """Return an excerpt of the instructions around the first match, with all matches marked. Empty without one."""
    pattern = word_pattern(text[:MAX_SEARCH_LENGTH])
    match = pattern.search(agent.instructions) if pattern else None
    if pattern is None or match is None:
        return []
    return highlight(excerpt(agent.instructions, match.start(), match.end()), pattern)


def word_pattern(text: str) -> re.Pattern[str] | None:
    """Return the pattern of the beginnings of words that a search names, or None if it names none."""
    words = sorted(map(re.escape, {*re.findall(r"\w+", text)}), key=len, reverse=True)
    return re.compile(rf"\b(?:{'|'.join(words)})", re.IGNORECASE) if words else None


def excerpt(text: str, start: int, end: int) -> str:
    """Return a part of a text with some whole words before and after it, on one line."""
    before, after = text[:start][-SNIPPET_CONTEXT:], text[end:][:SNIPPET_CONTEXT]
    if start > SNIPPET_CONTEXT:
        before = f"… {before.partition(' ')[2]}"
    if len(text) - end > SNIPPET_CONTEXT:
        after = f"{after.rpartition(' ')[0]} …"
    return " ".join(f"{before}{text[start:end]}{after}".split())


def highlight(text: str, pattern: re.Pattern[str]) -> list[SnippetPart]:
    parts, position = [], 0
    for match in pattern.finditer(text):
        parts += [SnippetPart(text[position : match.start()], False), SnippetPart(match.group(), True)]
        position = match.end()
    return [part for part in [*parts, SnippetPart(text[position:], False)] if part.text]
