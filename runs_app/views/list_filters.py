"""The list of runs: what an address asks of it, and its rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import TextField
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Coalesce, Left
from django.http import QueryDict

from agentcms.web.list_state import Chip, ListState, parse_number
from runs_app.display.formats import format_cost, format_duration, total_tokens
from runs_app.models import AgentRun

PER_PAGE = 50
SNIPPET_LENGTH = 160  # characters of the question
RECENT_RUNS = 300  # runs among which agents are offered to filter by
MAX_OFFERED = 20


@dataclass(frozen=True)
class RunRow:
    """A run as the list shows it."""

    run: Any

    @property
    def duration_text(self) -> str:
        return format_duration(self.run.duration) if self.run.is_finished else ""

    @property
    def tokens(self) -> int:
        return total_tokens(self.run.usage)

    @property
    def cost(self) -> str:
        return format_cost(self.run.cost)


class RunListState(ListState):
    """What an address asks of the list. Whatever it does not understand, it leaves out."""

    def __init__(self, runs: Any, user: Any, params: QueryDict) -> None:
        self.runs, self.user, self.params = runs, user, params
        self.agent = params.get("agent", "").replace("\0", "")
        state = str(params.get("status"))
        self.state = state if state in AgentRun.Status.values else ""
        self.version = parse_number(params.get("version", ""))
        self.mine = params.get("by") == "me"

    @property
    def is_narrowed(self) -> bool:
        return bool(self.agent or self.state or self.version or self.mine)

    @cached_property
    def found(self) -> Any:
        """Those that people asked for: what a sub-agent was asked stands on the page of the run that asked."""
        wanted: dict[str, Any] = {"parent": None}
        if self.agent:
            wanted["agent_key"] = self.agent
        if self.state:
            wanted["status"] = self.state
        if self.version:
            wanted["version_number"] = self.version
        if self.mine:
            wanted["requested_by"] = self.user
        return self.runs.filter(**wanted)

    @cached_property
    def page(self) -> Page[Any]:
        return Paginator(self.found, PER_PAGE).get_page(self.params.get("page"))

    @cached_property
    def rows(self) -> list[RunRow]:
        runs: Any = self.page.object_list
        # The first message begins the question; its content is text, or a list of parts.
        first = Coalesce(KT("input__messages__0__content__0__text"), KT("input__messages__0__content"))
        shown = runs.annotate(question=Left(Cast(first, TextField()), SNIPPET_LENGTH)).select_related("agent")
        return [RunRow(run) for run in shown.without_large_columns()]

    # --- addresses

    @property
    def chips(self) -> list[Chip]:
        chips = []
        if self.agent:
            chips.append(Chip("Agent", self.agent, self.url(agent=None, version=None)))
        if self.version:
            chips.append(Chip("Version", f"v{self.version}", self.url(version=None)))
        if self.state:
            chips.append(Chip("Status", AgentRun.Status(self.state).label, self.url(status=None)))
        if self.mine:
            chips.append(Chip("Asked by", "me", self.url(by=None)))
        return chips

    def offers(self) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """The filters that may be added, in groups: a label and its choices with their addresses."""
        if not self.state:
            yield "Status", [(label, self.url(status=key)) for key, label in AgentRun.Status.choices]
        if not self.mine:
            yield "Asked by", [("Me", self.url(by="me"))]
        if self.agent and not self.version and (numbers := self._recent("version_number", agent_key=self.agent)):
            numbers = sorted(filter(None, numbers), reverse=True)
            yield "Version", [(f"v{number}", self.url(version=str(number))) for number in numbers]
        if not self.agent and (agents := self._recent("agent_key")):
            yield "Agent", [(key, self.url(agent=key)) for key in sorted(agents)]

    def _recent(self, column: str, **wanted: Any) -> list[Any]:
        """The values of a column among the newest runs, newest first."""
        newest = self.runs.filter(parent=None, **wanted).values_list(column, flat=True)[:RECENT_RUNS]
        return [*dict.fromkeys(newest)][:MAX_OFFERED]
