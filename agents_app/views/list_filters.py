"""The list of agents as a person asks for it: searched, filtered, sorted, one page of it."""

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

from agentcms.web.list_state import Chip, ListState
from agents_app.api.representation import known_agents, warnings_json
from agents_app.models import Agent, AgentIndex, AgentQuerySet
from agents_app.registry import Kind, registry
from agents_app.search.tokenizer import MAX_SEARCH_LENGTH
from agents_app.views.status import Status, agent_status, find_drafts, find_warnings, last_changed_by

PER_PAGE = 50
SORTS = {
    "name": ("name", "id"),
    "-name": ("-name", "-id"),
    "updated": ("updated_at", "id"),
    "-updated": ("-updated_at", "id"),
}
STATUS_FILTERS = {"draft": "Draft ahead", "broken": "Broken references"}
SNIPPET_CONTEXT = 60  # characters on each side of a match

# The texts of a configuration are long, and a list shows few of them.
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
    text: str
    marked: bool


@dataclass(frozen=True)
class AgentListRow:
    """An agent as the list shows it."""

    agent: Agent
    status: Status
    updated_by: str
    snippet: Sequence[SnippetPart]

    @property
    def tool_count(self) -> int:
        return len(self.agent.tools) + len(self.agent.integration_tools)


class AgentListState(ListState):
    """What an address asks of the list. Whatever it does not understand, it leaves out."""

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
    def is_narrowed(self) -> bool:
        return bool(self.q or self.owner is not None or self.state or self.provider)

    @cached_property
    def found(self) -> AgentQuerySet:
        found = self.agents.filter(head_version__isnull=False)
        if self.q:
            heads = AgentIndex.objects.filter(is_head=True)
            found = found.filter(pk__in=heads.search(self.q).values("agent"))
        if self.owner is not None:
            found = found.filter(owner_id=self.owner.replace("\0", ""))
        if self.provider:
            found = found.filter(model__provider=self.provider)
        if self.state == "draft":
            found = found.exclude(head_version__snapshot_hash=F("active_version__snapshot_hash"))
        if self.state == "broken":
            found = found.with_ids(ids_with_missing_references(found))
        return found

    @cached_property
    def page(self) -> Page[Any]:
        ordered = self.found.order_by(*SORTS[self.sort])
        return Paginator(ordered, PER_PAGE).get_page(self.params.get("page"))

    @cached_property
    def rows(self) -> list[AgentListRow]:
        """The agents of the page: their rows, and what stands beside them, in a fixed number of queries."""
        page: Any = self.page.object_list
        wanted = [agent.pk for agent in page.only("pk")]
        unshown = UNUSED_COLUMNS if self.q else (*UNUSED_COLUMNS, "instructions")
        unsorted = self.agents.filter(pk__in=wanted).with_versions().defer(*unshown)
        by_id = {agent.pk: agent for agent in unsorted}
        agents = [by_id[pk] for pk in wanted if pk in by_id]
        drafts, warned, movers = find_drafts(agents), find_warnings(agents), last_changed_by(agents)
        return [
            AgentListRow(
                agent,
                agent_status(agent, warned[agent.pk], drafts.get(agent.pk)),
                movers[agent.pk],
                build_snippet(agent, self.q),
            )
            for agent in agents
        ]

    # --- addresses

    @property
    def chips(self) -> list[Chip]:
        chips = []
        if self.q:
            chips.append(Chip("Search", self.q, self.url(q=None)))
        if self.owner is not None:
            chips.append(Chip("Owner", self.owner or "Shared space", self.url(owner=None)))
        if self.state:
            chips.append(Chip("Status", STATUS_FILTERS[self.state], self.url(status=None)))
        if self.provider:
            chips.append(Chip("Model", self.provider, self.url(provider=None)))
        return chips

    def offers(self, owners: Sequence[str]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """The filters that may be added, in groups: a label and its choices with their addresses."""
        if not self.state:
            yield "Status", [(label, self.url(status=key)) for key, label in STATUS_FILTERS.items()]
        if self.owner is None:
            yield "Owner", [(owner or "Shared space", self.url(owner=owner)) for owner in owners]
        if not self.provider:
            providers = registry.entries(Kind.MODEL_PROVIDER)
            yield "Model", [(each.title, self.url(provider=each.key)) for each in providers]

    @property
    def sorts(self) -> Mapping[str, dict[str, str]]:
        """For each column that sorts: the address that sorts by it, and how it does now."""
        return {
            name: {
                "href": self.url(sort=f"-{name}" if self.sort == name else name),
                "now": {name: "ascending", f"-{name}": "descending"}.get(self.sort, ""),
            }
            for name in ("name", "updated")
        }


def ids_with_missing_references(agents: AgentQuerySet) -> list[str]:
    """The ids of those that name something nobody registered."""
    columns = agents.order_by().annotate(references=Cast("head_version__references", TextField()))
    rows: list[Any] = list(columns.values_list("id", "owner_id", "references", named=True))
    known = known_agents(rows)
    return [
        row.id for row in rows if warnings_json(row.references, registry.fingerprint, known.get(row.id, ())) != "[]"
    ]


def build_snippet(agent: Agent, text: str) -> list[SnippetPart]:
    """Where the instructions say what was searched for, with the words marked; empty where they do not."""
    words = sorted(map(re.escape, re.findall(r"\w+", text)), key=len, reverse=True)
    if not words:
        return []
    pattern = re.compile(rf"\b(?:{'|'.join(words)})", re.IGNORECASE)
    match = pattern.search(agent.instructions)
    if match is None:
        return []
    return highlight(excerpt(agent.instructions, match.start(), match.end()), pattern)


def excerpt(text: str, start: int, end: int) -> str:
    """A stretch of a text with some whole words before it and after it, on one line."""
    before, after = text[:start][-SNIPPET_CONTEXT:], text[end:][:SNIPPET_CONTEXT]
    if start > SNIPPET_CONTEXT:
        before = f"… {before.partition(' ')[2]}"
    if len(text) - end > SNIPPET_CONTEXT:
        after = f"{after.rpartition(' ')[0]} …"
    return " ".join(f"{before}{text[start:end]}{after}".split())


def highlight(text: str, pattern: re.Pattern[str]) -> list[SnippetPart]:
    parts, place = [], 0
    for match in pattern.finditer(text):
        parts += [SnippetPart(text[place : match.start()], False), SnippetPart(match.group(), True)]
        place = match.end()
    return [part for part in [*parts, SnippetPart(text[place:], False)] if part.text]
