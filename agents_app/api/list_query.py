"""Which agents a list shows, in which order, and how far it is."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cachetools import TTLCache
from django.db.models import Q

from access_app.caller_params import CALLER_PARAMS, CallerKind, caller_params, placeholder_caller
from access_app.permissions import has_role_everywhere
from access_app.role import Role
from agentcms.api.pagination import Paging
from agentcms.api.query_params import MAX_PER_PAGE, OrderBy, QueryParams
from agentcms.cache import SizeLimitedCache
from agentcms.db.compiled_query import WINDOW, CompiledQuery
from agentcms.wire.timestamps import parse_timestamp
from agents_app.api import representation
from agents_app.api.representation_cache import AgentKey
from agents_app.models import Agent, AgentIndex, AgentQuerySet

NEWEST = OrderBy("createdAt")
STATES = {"published": ("is_live", "active_version"), "draft": ("is_head", "head_version")}
ORDER = {"createdAt": "created_at", "updatedAt": "updated_at", "name": "index__name"}

ANYWHERE = Q()

# Counting more agents takes longer than reading a page of them.
MIN_CACHED_TOTAL = 10_000
TOTAL_CACHE_SECONDS = 5.0

_totals: SizeLimitedCache[Any, int] = SizeLimitedCache(TTLCache(1000, TOTAL_CACHE_SECONDS))


@dataclass(frozen=True)
class AgentListParams:
    """What the query string of a list asks for."""

    paging: Paging
    order: OrderBy
    status: str
    owner_id: str | None
    metadata: dict[str, Any] = field(hash=False)
    search: str
    cursor: str | None
    after: list[Any] | None = field(hash=False)

    @property
    def shown(self) -> str:
        """The relation whose snapshot is shown."""
        return STATES[self.status][1]

    @property
    def column(self) -> str:
        return ("-" if self.order.direction == "DESC" else "") + ORDER[self.order.field]

    @property
    def is_plain(self) -> bool:
        return self.owner_id is None and not self.metadata and not self.search and self.cursor is None


def parse_params(query: QueryParams) -> AgentListParams:
    """The parameters of a list; `authorId` is another name of `ownerId`."""
    order = query.order_by(tuple(ORDER), NEWEST)
    owner_id, author_id = query.text("ownerId"), query.text("authorId")
    if owner_id is not None and author_id not in (None, owner_id):
        query.add_fault("authorId", "This is another name of ownerId. Give one of them.")
    status = query.choice("status", tuple(STATES), "published")
    cursor = query.text("cursor")
    return AgentListParams(
        paging=query.paging(100),
        order=order,
        status=status,
        owner_id=author_id if owner_id is None else owner_id,
        metadata=query.json_object("metadata") or {},
        search=query.text("search") or "",
        cursor=cursor,
        after=read_cursor(query, cursor, order) if cursor else None,
    )


def filter_agents(user: Any, wanted: AgentListParams) -> AgentQuerySet:
    """The agents that the caller may see and that the filters let pass, by the state that `status` names."""
    agents = Agent.objects.for_user(user).filter(active_version__isnull=False)
    if wanted.owner_id is not None:
        agents = agents.filter(owner_id=wanted.owner_id)
    state = STATES[wanted.status][0]
    if wanted.metadata or wanted.search:
        index = AgentIndex.objects.filter(**{state: True})
        index = index.with_metadata(wanted.metadata).search(wanted.search)
        agents = agents.filter(pk__in=index.values("agent"))
    return agents


def order_agents(agents: AgentQuerySet, state: str, column: str, after: Q = ANYWHERE) -> AgentQuerySet:
    """By a column and then by id, from a place on; a name is that of the state shown."""
    if column.endswith("index__name"):
        # In one filter with the place: in two, the second would be about the name of either state.
        after = Q(**{f"index__{state}": True}) & after
    return agents.filter(after).order_by(column, "id")


def fetch_page(user: Any, wanted: AgentListParams) -> tuple[list[AgentKey], int]:
    """The agents of one page, and how many there are in all."""
    paging = wanted.paging
    if wanted.is_plain:
        variant = (CallerKind.of(user), STATES[wanted.status][0], wanted.column)
        found: Iterable[Any] = PAGE_QUERY(variant, limit=(paging.per_page, paging.start), **caller_params(user))
    else:
        agents = order_agents(filter_agents(user, wanted), STATES[wanted.status][0], wanted.column)
        found = agents.values_list(*AgentKey._fields)[paging.start : paging.stop]
    return [AgentKey(*row) for row in found], total(user, wanted)


def total(user: Any, wanted: AgentListParams) -> int:
    """How many agents there are; where they are many, the count of a moment ago will do."""
    everything = has_role_everywhere(user, Role.VIEWER)
    key = (user.pk, everything, wanted.status, wanted.owner_id, json.dumps(wanted.metadata), wanted.search)
    if (cached := _totals.get(key)) is not None:
        return cached
    if wanted.is_plain:
        rows = representation.COUNT_QUERY(CallerKind.of(user), **caller_params(user))
        count = rows[0][0] if rows else 0
    else:
        count = filter_agents(user, wanted).count()
    if count > MIN_CACHED_TOTAL:
        _totals.set(key, count)
    return count


def fetch_cursor_page(user: Any, wanted: AgentListParams) -> tuple[list[AgentKey], str | None]:
    """The agents after a cursor, and the cursor of what follows, None at the end."""
    size = min(wanted.paging.per_page, MAX_PER_PAGE)
    after = _after(wanted, *wanted.after) if wanted.after else ANYWHERE
    agents = order_agents(filter_agents(user, wanted), STATES[wanted.status][0], wanted.column, after)
    found = list(agents.values_list(*AgentKey._fields, ORDER[wanted.order.field])[: size + 1])
    following = write_cursor(wanted, found[size - 1]) if len(found) > size else None
    return [AgentKey(*row[:-1]) for row in found[:size]], following


def _after(wanted: AgentListParams, value: Any, agent_id: str) -> Q:
    column = ORDER[wanted.order.field]
    way = "lt" if wanted.order.direction == "DESC" else "gt"
    # The first part is what an index walks; the second drops what was shown of those that are equal.
    return Q(**{f"{column}__{way}e": value}) & (Q(**{f"{column}__{way}": value}) | Q(id__gt=agent_id))


def write_cursor(wanted: AgentListParams, row: tuple[Any, ...]) -> str:
    value = row[-1].isoformat() if isinstance(row[-1], datetime) else row[-1]
    text = json.dumps([wanted.order.field, wanted.order.direction, value, row[0]])
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(query: QueryParams, cursor: str, order: OrderBy) -> list[Any] | None:
    """The value and the id after which the list goes on."""
    try:
        field, direction, value, agent_id = json.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        if (field, direction) != (order.field, order.direction) or not isinstance(agent_id, str):
            raise ValueError
        if "\0" in agent_id + value:
            raise ValueError
        (agent_id + value).encode()
        return [value if field == "name" else parse_timestamp(value), agent_id]
    except (ValueError, TypeError, RecursionError):
        query.add_fault("cursor", "Give a cursor of this list in this order, as nextCursor gave it.")
        return None


def _many(variant: tuple[CallerKind, str, str], **caller: Any) -> Any:
    kind, state, column = variant
    seen = order_agents(
        Agent.objects.for_user(placeholder_caller(kind, **caller)).filter(active_version__isnull=False), state, column
    )
    # The page is found first, in an index alone; a deep one would read all the agents before it.
    found = Agent.objects.filter(pk__in=seen.values("pk")[WINDOW])
    return order_agents(found, state, column).values_list(*AgentKey._fields)


PAGE_QUERY = CompiledQuery(_many, **CALLER_PARAMS)
