"""The query of the list of agents: filters, order, pages and cursors."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

from cachetools import TTLCache
from django.db.models import Q, QuerySet

from access_app.caller import Caller
from access_app.caller_params import CallerParam
from access_app.permissions import has_role_everywhere
from access_app.role import Role
from agentcms.api.pagination import Paging
from agentcms.api.query_params import MAX_PER_PAGE, OrderBy, QueryParams
from agentcms.cache import SizeLimitedCache
from agentcms.db.statements.compiled_query import compiled_query
from agentcms.wire.json_types import JSONObject, JSONValue
from agents_app.api.list_cursor import read_cursor, write_cursor
from agents_app.api.representation import agent_total
from agents_app.api.representation_cache import AgentKey
from agents_app.models import Agent, AgentIndex, AgentQuerySet

NEWEST_FIRST = OrderBy("createdAt")
# By `status`: the flag of its rows in the index, and the relation to the version that is shown.
STATE_COLUMNS = {
    "published": ("is_live", "active_version"),
    "draft": ("is_head", "head_version"),
    "archived": ("is_live", "active_version"),
}
ORDER_COLUMNS = {"createdAt": "created_at", "updatedAt": "updated_at", "name": "index__name"}

ARCHIVED = "archived"

NO_CONDITION = Q()

# Counting more agents takes longer than reading a page of them.
MIN_CACHED_TOTAL = 10_000
TOTAL_CACHE_SECONDS = 5.0

_totals: SizeLimitedCache[Hashable, int] = SizeLimitedCache(TTLCache(1000, TOTAL_CACHE_SECONDS))


@dataclass(frozen=True)
class AgentListParams:
    """The query parameters of a list."""

    paging: Paging
    order: OrderBy
    status: str
    owner_id: str | None
    metadata: JSONObject = field(hash=False)
    search: str
    cursor: str | None
    after: list[JSONValue] | None = field(hash=False)

    @property
    def index_flag(self) -> str:
        return STATE_COLUMNS[self.status][0]

    @property
    def relation(self) -> str:
        """The relation to the version that each agent shows."""
        return STATE_COLUMNS[self.status][1]

    @property
    def order_column(self) -> str:
        return ORDER_COLUMNS[self.order.field]

    @property
    def order_by(self) -> str:
        return self.order.signed(self.order_column)

    @property
    def has_no_filter(self) -> bool:
        filters = self.owner_id is not None or self.metadata or self.search or self.status == ARCHIVED
        return not filters and self.cursor is None


def parse_params(query: QueryParams) -> AgentListParams:
    """Return the parameters of a list. `authorId` is another name of `ownerId`."""
    order = query.order_by(tuple(ORDER_COLUMNS), NEWEST_FIRST)
    owner_id, author_id = query.text("ownerId"), query.text("authorId")
    if owner_id is not None and author_id not in (None, owner_id):
        query.add_fault("authorId", "This is another name of ownerId. Give one of them.")
    status = query.choice("status", tuple(STATE_COLUMNS), "published")
    cursor, paging = query.text("cursor"), query.paging(100)
    if cursor is not None:
        query.warn_unused("page", "A page by cursor has no number, so this has no effect. Omit page or cursor.")
    return AgentListParams(
        paging=paging,
        order=order,
        status=status,
        owner_id=author_id if owner_id is None else owner_id,
        metadata=query.json_object("metadata") or {},
        search=query.text("search") or "",
        cursor=cursor,
        after=read_cursor(query, cursor, order) if cursor else None,
    )


def filter_agents(user: Caller, params: AgentListParams) -> AgentQuerySet:
    """Return the agents that the user may see and that match the filters in the state that `status` names."""
    agents = Agent.objects.for_user(user).filter(active_version__isnull=False)
    agents = agents.archived() if params.status == ARCHIVED else agents.without_archived()
    if params.owner_id is not None:
        agents = agents.filter(owner_id=params.owner_id)
    if params.metadata or params.search:
        index = AgentIndex.objects.filter(**{params.index_flag: True})
        index = index.with_metadata(params.metadata).search(params.search)
        agents = agents.filter(pk__in=index.values("agent"))
    return agents


def order_agents(agents: AgentQuerySet, index_flag: str, order_by: str, condition: Q = NO_CONDITION) -> AgentQuerySet:
    """Order by a column and the id, with a condition on that column. Names are those of the state with this flag."""
    if order_by.endswith("index__name"):
        # In the same filter as the condition: in a second one, the condition would apply to the names of all states.
        condition = Q(**{f"index__{index_flag}": True}) & condition
    return agents.filter(condition).order_by(order_by, "id")


@compiled_query
def agent_keys(index_flag: str, order_by: str, *, user: CallerParam, window: slice) -> QuerySet[Agent, Any]:
    """Return the columns of AgentKey for one page of all agents."""
    visible = Agent.objects.for_user(user).without_archived().filter(active_version__isnull=False)
    # The subquery reads an index alone. Without it, a late page would read the rows of all agents before it.
    ids = order_agents(visible, index_flag, order_by).values("pk")[window]
    agents = Agent.objects.filter(pk__in=ids)
    return order_agents(agents, index_flag, order_by).values_list(*AgentKey._fields)


def fetch_page(user: Caller, params: AgentListParams) -> tuple[list[AgentKey], int]:
    """Return the agents of one page, and the number of agents on all pages."""
    window = slice(params.paging.start, params.paging.stop)
    rows: Iterable[Any]
    # Lists without filters share statements that are built once per process.
    if params.has_no_filter:
        rows = agent_keys(params.index_flag, params.order_by, user=user, window=window)
    else:
        agents = order_agents(filter_agents(user, params), params.index_flag, params.order_by)
        rows = agents.values_list(*AgentKey._fields)[window]
    return [AgentKey(*row) for row in rows], count_agents(user, params)


def count_agents(user: Caller, params: AgentListParams) -> int:
    """Return the number of agents on all pages. A large number may be some seconds old."""
    everything = has_role_everywhere(user, Role.VIEWER)
    key = (user.pk, everything, params.status, params.owner_id, json.dumps(params.metadata), params.search)
    if (cached := _totals.get(key)) is not None:
        return cached
    count = agent_total.first(user=user) or 0 if params.has_no_filter else filter_agents(user, params).count()
    if count >= MIN_CACHED_TOTAL:
        _totals.set(key, count)
    return count


def fetch_cursor_page(user: Caller, params: AgentListParams) -> tuple[list[AgentKey], str | None]:
    """Return the agents after a cursor, and the next cursor, which is None at the end."""
    size = min(params.paging.per_page, MAX_PER_PAGE)
    condition = _after(params, *params.after) if params.after else NO_CONDITION
    agents = order_agents(filter_agents(user, params), params.index_flag, params.order_by, condition)
    # One row more than the page has tells whether there is a next one.
    rows = list(agents.values_list(*AgentKey._fields, params.order_column)[: size + 1])
    next_cursor = write_cursor(params.order, rows[size - 1]) if len(rows) > size else None
    return [AgentKey(*row[:-1]) for row in rows[:size]], next_cursor


def _after(params: AgentListParams, value: object, agent_id: str) -> Q:
    column = params.order_column
    lookup = "lt" if params.order.direction == "DESC" else "gt"
    # An index finds the rows of the first condition. The second one drops equal rows of the pages before.
    return Q(**{f"{column}__{lookup}e": value}) & (Q(**{f"{column}__{lookup}": value}) | Q(id__gt=agent_id))
