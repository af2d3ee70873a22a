"""Tabs, filters and pages of the list of approvals."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from django.core.paginator import Page, Paginator
from django.http import QueryDict

from access_app.caller import Caller
from agentcms.web.list_state import Chip, ListState
from agents_app.models import Agent
from runs_app.display.approvals import PendingCallView, build_approval_views
from runs_app.models import PendingCall
from runs_app.models.pending_call import PendingCallQuerySet
from runs_app.views.approval_count import MAX_COUNT, count_decidable

CARDS_PER_PAGE = 10
ROWS_PER_PAGE = 50
RECENT_CALLS = 300  # from which the values of filters are taken
MAX_FILTER_VALUES = 20
DECIDED_STATES = [choice for choice in PendingCall.State.choices if choice[0] != PendingCall.State.OPEN]


class ListTab(NamedTuple):
    """A tab of the list. The number is None for the decided calls, which may be many."""

    key: str
    label: str
    number: int | None
    url: str


class ApprovalListState(ListState):
    """The tab, the filters and the page in the query of a URL. Invalid values are ignored."""

    def __init__(self, user: Caller, params: QueryDict) -> None:
        self.user, self.params = user, params
        self.tab = params.get("tab") if params.get("tab") in {"others", "decided"} else ""
        self.agent = params.get("agent", "").replace("\0", "")
        state = params.get("state", "")
        self.state = state if self.tab == "decided" and state in dict(DECIDED_STATES) else ""
        self.mine = self.tab == "decided" and params.get("by") == "me"

    @property
    def is_filtered(self) -> bool:
        return bool(self.agent or self.state or self.mine)

    @property
    def of_tab(self) -> PendingCallQuerySet:
        """The calls of the tab: the oldest first where they wait, the newest decision first where they do not."""
        if self.tab == "decided":
            decided = PendingCall.objects.readable_by(self.user).exclude(state=PendingCall.State.OPEN)
            return decided.order_by("-decided_at", "-id")
        if self.tab == "others":
            return self.for_others.order_by("created_at", "id")
        return PendingCall.objects.decidable_by(self.user).order_by("created_at", "id")

    @property
    def for_others(self) -> PendingCallQuerySet:
        """The waiting calls that the user may read and not decide."""
        decidable = PendingCall.objects.decidable_by(self.user).order_by()
        return PendingCall.objects.readable_by(self.user).waiting().exclude(pk__in=decidable.values("pk"))

    @cached_property
    def matches(self) -> PendingCallQuerySet:
        filters: dict[str, object] = {"agent_key": self.agent} if self.agent else {}
        if self.state:
            filters["state"] = self.state
        if self.mine:
            filters["decided_by"] = self.user.pk
        return self.of_tab.filter(**filters)

    @cached_property
    def page(self) -> Page[PendingCall]:
        per_page = ROWS_PER_PAGE if self.tab == "decided" else CARDS_PER_PAGE
        return Paginator(self.matches, per_page).get_page(self.params.get("page"))

    @cached_property
    def views(self) -> list[PendingCallView]:
        # The rows of decided calls show no words, and their runs may have very many events.
        return build_approval_views(self.page.object_list, self.user, with_words=self.tab != "decided")

    # --- URLs

    @cached_property
    def number_to_decide(self) -> int:
        return count_decidable(self.user)

    @cached_property
    def tabs(self) -> list[ListTab]:
        others = self.for_others.order_by()[: MAX_COUNT + 1].count()
        tabs = [ListTab("", "To decide", self.number_to_decide, "?")]
        if others or self.tab == "others":
            tabs.append(ListTab("others", "Waiting for others", others, "?tab=others"))
        return [*tabs, ListTab("decided", "Decided", None, "?tab=decided")]

    @property
    def clear_url(self) -> str:
        return self.url(agent=None, state=None, by=None)

    @property
    def chips(self) -> list[Chip]:
        chips = []
        if self.agent:
            names = Agent.objects.for_user(self.user).names_of([self.agent])
            chips.append(Chip("Agent", names[self.agent], self.url(agent=None)))
        if self.state:
            chips.append(Chip("Decision", PendingCall.State(self.state).label, self.url(state=None)))
        if self.mine:
            chips.append(Chip("Decided by", "me", self.url(by=None)))
        return chips

    def available_filters(self) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """Yield the filters that can be added: a label and its choices with their URLs."""
        if self.tab == "decided" and not self.state:
            yield "Decision", [(label, self.url(state=key)) for key, label in DECIDED_STATES]
        if self.tab == "decided" and not self.mine:
            yield "Decided by", [("Me", self.url(by="me"))]
        if not self.agent and len(agents := self._recent_agents()) > 1:
            names = Agent.objects.for_user(self.user).names_of(agents)
            yield "Agent", [(names[key], self.url(agent=key)) for key in sorted(agents, key=names.__getitem__)]

    def _recent_agents(self) -> list[str]:
        newest = self.of_tab.values_list("agent_key", flat=True)[:RECENT_CALLS]
        return [*dict.fromkeys(newest)][:MAX_FILTER_VALUES]
