"""Filters and rows of the list of runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import TextField
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Coalesce, Left
from django.http import QueryDict

from access_app.caller import Caller
from access_app.permissions import granted_covers, granted_role
from access_app.role import Role
from agentcms.ids import parse_whole_number
from agentcms.web.list_state import Chip, ListState
from agents_app.models import Agent
from runs_app.display.formats import format_cost, format_duration, total_tokens
from runs_app.models import AgentRun
from runs_app.models.run_queryset import AgentRunQuerySet

PER_PAGE = 50
SNIPPET_LENGTH = 160  # characters of the message
RECENT_RUNS = 300  # runs from which the values of filters are taken
MAX_OFFERED = 20
# The lengths are bounded, so that a long message takes linear time.
BACKGROUND_TASK = re.compile(r'<background-task [^>]{0,200}\btool="([^"]{1,100})"')


@dataclass(frozen=True)
class RunRow:
    """A row of the list."""

    run: AgentRun
    agent_name: str

    @property
    def question(self) -> str:
        """The first message, or in words what began the run instead."""
        text = str(getattr(self.run, "question", None) or "")
        if task := BACKGROUND_TASK.match(text):
            return f"Result of the background task {task[1]}"
        return text

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
    """The filters and the page in the query of a URL. Invalid values are ignored.

    The list of the runs of one agent, `of_agent`, cannot be filtered by agent.
    """

    def __init__(self, runs: AgentRunQuerySet, user: Caller, params: QueryDict, of_agent: Agent | None = None) -> None:
        self.runs, self.user, self.params, self.of_agent = runs, user, params, of_agent
        self.agent = "" if of_agent else params.get("agent", "").replace("\0", "")
        state = str(params.get("status"))
        self.state = state if state in AgentRun.Status.values else ""
        self.version = parse_whole_number(params.get("version", ""))
        self.mine = params.get("by") == "me"

    @property
    def is_filtered(self) -> bool:
        return bool(self.agent or self.state or self.version or self.mine)

    @cached_property
    def matches(self) -> AgentRunQuerySet:
        """The matching runs. Child runs are listed on the pages of their parents."""
        filters: dict[str, object] = {"parent": None, **self._agent_filter}
        if self.version:
            filters["version_number"] = self.version
        if self.mine:
            filters["requested_by"] = self.user.pk
        runs = self.runs.filter(**filters)
        return runs.with_status(self.state) if self.state else runs

    @property
    def _agent_filter(self) -> dict[str, object]:
        if self.of_agent:
            return {"agent": self.of_agent}
        return {"agent_key": self.agent} if self.agent else {}

    @cached_property
    def page(self) -> Page[AgentRun]:
        return Paginator(self.matches, PER_PAGE).get_page(self.params.get("page"))

    @cached_property
    def rows(self) -> list[RunRow]:
        # Search the keys alone. Otherwise the database also builds the rows of all earlier pages.
        on_page: Any = self.page.object_list
        runs = AgentRun.objects.filter(pk__in=on_page.values("pk"))
        # The content of a message is a text or a list of parts.
        first = Coalesce(KT("input__messages__0__content__0__text"), KT("input__messages__0__content"))
        runs = runs.annotate(
            question=Left(Cast(first, TextField()), SNIPPET_LENGTH),
            granted_for_current_agent=granted_role(self.user, "agent__owner_id"),
        )
        return [RunRow(run, self.agent_name(run)) for run in runs.select_related("agent").without_large_columns()]

    def agent_name(self, run: Any) -> str:
        """Return the current name of the agent of a run, or its ID if it was in code or the user may not see it."""
        is_visible = run.agent and granted_covers(self.user, Role.VIEWER, run.granted_for_current_agent)
        name: str = run.agent.name if is_visible else run.agent_key
        return name

    # --- URLs

    @property
    def chips(self) -> list[Chip]:
        chips = []
        if self.agent:
            names = Agent.objects.for_user(self.user).names_of([self.agent])
            chips.append(Chip("Agent", names[self.agent], self.url(agent=None, version=None)))
        if self.version:
            chips.append(Chip("Version", f"v{self.version}", self.url(version=None)))
        if self.state:
            chips.append(Chip("Status", AgentRun.Status(self.state).label, self.url(status=None)))
        if self.mine:
            chips.append(Chip("Started by", "me", self.url(by=None)))
        return chips

    def available_filters(self) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """Yield the filters that can be added: a label and its choices with their URLs."""
        if not self.state:
            yield "Status", [(label, self.url(status=key)) for key, label in AgentRun.Status.choices]
        if not self.mine:
            yield "Started by", [("Me", self.url(by="me"))]
        # Runs of unsaved text have no number.
        if self._agent_filter and not self.version and (numbers := [*filter(None, self._recent("version_number"))]):
            choices = [(f"v{number}", self.url(version=str(number))) for number in sorted(numbers, reverse=True)]
            yield "Version", choices
        if not self._agent_filter and (agents := self._recent("agent_key")):
            names = Agent.objects.for_user(self.user).names_of(agents)
            yield "Agent", [(names[key], self.url(agent=key)) for key in sorted(agents, key=names.__getitem__)]

    def _recent(self, column: str) -> list[Any]:
        """Return the values of a column among the newest runs, newest first."""
        newest = self.runs.filter(parent=None, **self._agent_filter).values_list(column, flat=True)[:RECENT_RUNS]
        return [*dict.fromkeys(newest)][:MAX_OFFERED]
