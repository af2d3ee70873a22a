"""Caches of versions and comparisons as JSON text, and the queries that find what is in them.

The queries read keys, which hold everything about a version that may change. Texts are read only for the keys that
are not cached.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

from cachetools import FIFOCache
from django.db.models import Count, F, IntegerField, OuterRef, Q, QuerySet, Subquery

from access_app.caller import Caller
from access_app.caller_params import CallerParam
from agentcms.api.pagination import PageSize, in_parts
from agentcms.cache import K, SizeLimitedCache
from agentcms.db.statements.compiled_query import compiled_query
from agentcms.db.statements.parameters import json_array_items
from agentcms.wire.canonical import merge_json_objects
from agents_app.models import Agent
from versions_app.api.representation import (
    Pointers,
    VersionRow,
    comparison_json,
    version_json,
    version_rows,
    with_pointers,
)
from versions_app.models import AgentVersion


class VersionKey(NamedTuple):
    """A version with all of its columns that may change."""

    id: UUID
    name: str
    change_message: str
    pinned: bool


def _text_cache(max_characters: int) -> SizeLimitedCache[K, str]:
    # A few large texts must not push out all others.
    return SizeLimitedCache(FIFOCache(max_characters, getsizeof=len), max_characters // 100)


# By agent too: an agent that is restored from the trash may have another ID.
_version_texts: SizeLimitedCache[tuple[str, VersionKey], str] = _text_cache(8_000_000)  # some thousands of versions
_comparison_texts: SizeLimitedCache[tuple[UUID, UUID], str] = _text_cache(4_000_000)


@compiled_query
def pointers_with_total(*, user: CallerParam, agent_id: str) -> QuerySet[Agent, Any]:
    """Select the pointers of an agent and the number of its versions."""
    versions = AgentVersion.objects.order_by().filter(agent=OuterRef("pk"))
    total = versions.values("agent").annotate(total=Count("pk")).values("total")
    agents = Agent.objects.for_user(user).filter(pk=agent_id).order_by()
    counted = agents.annotate(total=Subquery(total, IntegerField()))
    return counted.values_list("pk", "active_version_id", "head_version_id", "total")


@compiled_query
def version_keys(*order_by: str, agent_id: str, window: slice) -> QuerySet[AgentVersion, Any]:
    return AgentVersion.objects.filter(agent_id=agent_id).order_by(*order_by).values_list(*VersionKey._fields)[window]


@compiled_query
def version_keys_by_id(
    with_pointers: bool, *, user: CallerParam, agent_id: str, a: UUID, b: UUID
) -> QuerySet[Any, Any]:
    """Select two versions of an agent by their ids and, if asked for, its live and its head version."""
    agents = Agent.objects.for_user(user).filter(pk=agent_id)
    condition = Q(pk__in=(a, b))  # without the pointers, an index finds both
    if with_pointers:
        condition |= Q(pk=F("agent__active_version")) | Q(pk=F("agent__head_version"))
    versions = AgentVersion.objects.order_by().filter(condition, agent_id=agent_id, agent__in=agents)
    return versions.values_list(*VersionKey._fields, "agent__active_version", "agent__head_version")


@compiled_query
def version_rows_by_id(*, ids: list[UUID]) -> QuerySet[AgentVersion, Any]:
    return version_rows(AgentVersion.objects.order_by().filter(pk__in=json_array_items(ids, "uuid")))


def find_pointers_and_total(user: Caller, agent_id: str) -> tuple[Pointers, int] | None:
    """Return the pointers of an agent and the number of its versions, or None if the user may not see it."""
    row = pointers_with_total.first(user=user, agent_id=agent_id)
    if row is None:
        return None
    *pointers, total = row
    return Pointers(*pointers), total or 0


def get_page(agent_id: str, order_by: Sequence[str], window: slice) -> list[VersionKey]:
    """Return the keys of a part of an agent's history."""
    return [VersionKey(*row) for row in version_keys(*order_by, agent_id=agent_id, window=window)]


def get_version_pair(
    user: Caller, agent_id: str, a: UUID, b: UUID, *, with_pointers: bool
) -> list[tuple[VersionKey, Pointers]]:
    """Return the versions `a` and `b` of an agent that the user may see, as far as they exist.

    With `with_pointers` its live and its head version are added.
    """
    rows = version_keys_by_id(with_pointers, user=user, agent_id=agent_id, a=a, b=b)
    return [(VersionKey(*row[:-2]), Pointers(agent_id, *row[-2:])) for row in rows]


def get_many_json(keys: Sequence[VersionKey], pointers: Pointers) -> list[str]:
    """Return the JSON text of each version. Versions that are not cached are read in parts.

    Raise BadRequest if they are too large for one page.

    A version that changed since its key was read is shown as it is now. One that was deleted is left out.
    """
    cached = _version_texts.get_many([(pointers.agent_id, key) for key in keys])
    texts = {key.id: text for (_, key), text in cached.items()}
    # A few pages of large versions at once would take all memory.
    size = PageSize()
    for missing in in_parts([key.id for key in keys if key.id not in texts]):
        loaded = {version_id: text for version_id, (_, text) in _load(missing, pointers.agent_id).items()}
        size.add(sum(map(len, loaded.values())))
        texts |= loaded
    return [with_pointers(texts[key.id], key.id, pointers) for key in keys if key.id in texts]


def find_comparison_json(before: VersionKey, after: VersionKey, pointers: Pointers) -> str | None:
    """Return the JSON text of the differences between two versions, or None if one was deleted meanwhile."""
    ids = (before.id, after.id)  # the content of a version never changes
    if (text := _comparison_texts.get(ids)) is None:
        rows = _load(ids, pointers.agent_id)
        if not rows.keys() >= set(ids):
            return None
        text = comparison_json(rows[before.id][0], rows[after.id][0])
        _comparison_texts.set(ids, text)
    versions = get_many_json((before, after), pointers)
    if len(versions) < len(ids):
        return None
    return merge_json_objects(text, f'{{"fromVersion":{versions[0]},"toVersion":{versions[1]}}}')


def _load(ids: Sequence[UUID], agent_id: str) -> dict[UUID, tuple[VersionRow, str]]:
    """Read versions by id and cache their texts. Return the row and the text of each that exists."""
    versions = {}
    for columns in version_rows_by_id(ids=list(ids)):
        row = VersionRow(*columns)
        text = version_json(row, agent_id)
        _version_texts.set((agent_id, VersionKey(row.id, row.name, row.change_message, row.pinned)), text)
        versions[row.id] = row, text
    return versions
