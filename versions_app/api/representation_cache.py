"""Versions as JSON text: of what a version says, which hardly ever changes, a process keeps what it told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

from cachetools import FIFOCache
from django.db.models import Count, F, IntegerField, OuterRef, Q, Subquery

from access_app.caller_params import CALLER_PARAMS, CallerKind, caller_params, placeholder_caller
from agentcms.cache import SizeLimitedCache
from agentcms.db.compiled_query import WINDOW, CompiledQuery, json_array_items
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


class Key(NamedTuple):
    """A version, and all of it that may change."""

    id: UUID
    name: str
    change_message: str
    pinned: bool


Keys = list[Key]


def _text_cache(max_characters: int) -> SizeLimitedCache[Any, str]:
    return SizeLimitedCache(FIFOCache(max_characters, getsizeof=len), max_characters // 100)


_version_texts = _text_cache(8_000_000)  # some thousands of versions
_comparison_texts = _text_cache(4_000_000)


def pointers_and_total(user: Any, agent_id: str) -> tuple[Pointers, int] | None:
    """Which versions of an agent are live and head, and how many there are; None where the caller may not see it."""
    found = HEAD(CallerKind.of(user), agent_id=agent_id, **caller_params(user))
    if not found:
        return None
    *pointers, total = found[0]
    return Pointers(*pointers), total or 0


def page(agent_id: str, columns: tuple[str, ...], limit: tuple[int, int]) -> Keys:
    """A part of the history of an agent, so ordered: so many versions, after so many."""
    return [Key(*row) for row in PAGE(columns, agent_id=agent_id, limit=limit)]


def load_pair(user: Any, agent_id: str, a: UUID, b: UUID, *, with_pointed: bool) -> list[tuple[Key, Pointers]]:
    """The versions `a` and `b` of an agent that the caller may see, and also its live and its head, if wanted."""
    found = PAIR_QUERY((CallerKind.of(user), with_pointed), agent_id=agent_id, a=a, b=b, **caller_params(user))
    return [(Key(*values[:-2]), Pointers(agent_id, *values[-2:])) for values in found]


def get_many_json(keys: Sequence[Key], pointers: Pointers) -> list[str]:
    """Each version as JSON text; one query where this process has not told all of them before.

    One that changed since its key was read is shown as it is now, one that went is left out.
    """
    told = {key.id: text for key, text in _version_texts.get_many(keys).items()}
    if missing := [key.id for key in keys if key.id not in told]:
        told |= {row_id: text for row_id, (_, text) in read(missing, pointers.agent_id).items()}
    return [with_pointers(told[key.id], key.id, pointers) for key in keys if key.id in told]


def comparison(before: Key, after: Key, pointers: Pointers) -> str | None:
    """What differs between two versions as JSON text; None where one of them went this moment."""
    ids = (before.id, after.id)  # what they say never changes
    if (text := _comparison_texts.get(ids)) is None:
        found = read(ids, pointers.agent_id)
        if not found.keys() >= set(ids):
            return None
        text = comparison_json(found[before.id][0], found[after.id][0])
        _comparison_texts.set(ids, text)
    shown = get_many_json((before, after), pointers)
    return (
        merge_json_objects(text, f'{{"fromVersion":{shown[0]},"toVersion":{shown[1]}}}')
        if len(shown) == len(ids)
        else None
    )


def read(ids: Sequence[UUID], agent_id: str) -> dict[UUID, tuple[VersionRow, str]]:
    """Those of the versions that are there, by id, each with what is told of it and kept."""
    found = {}
    for columns in THESE(ids=json.dumps([each.hex for each in ids])):
        row = VersionRow(*columns)
        text = version_json(row, agent_id)
        _version_texts.set(Key(row.id, row.name, row.change_message, row.pinned), text)
        found[row.id] = row, text
    return found


def _head(kind: CallerKind, agent_id: str, **caller: Any) -> Any:
    mine = AgentVersion.objects.order_by().filter(agent=OuterRef("pk"))
    total = mine.values("agent").annotate(total=Count("pk")).values("total")
    agents = Agent.objects.for_user(placeholder_caller(kind, **caller)).filter(pk=agent_id).order_by()
    counted = agents.annotate(total=Subquery(total, IntegerField()))
    return counted.values_list("pk", "active_version_id", "head_version_id", "total")


def _page(columns: tuple[str, ...], agent_id: str) -> Any:
    return AgentVersion.objects.filter(agent_id=agent_id).order_by(*columns).values_list(*Key._fields)[WINDOW]


def _some(variant: tuple[CallerKind, bool], agent_id: str, a: UUID, b: UUID, **caller: Any) -> Any:
    kind, with_pointed = variant
    agents = Agent.objects.for_user(placeholder_caller(kind, **caller)).filter(pk=agent_id)
    wanted = Q(pk__in=(a, b))  # alone it is two looks into an index
    if with_pointed:
        wanted |= Q(pk=F("agent__active_version")) | Q(pk=F("agent__head_version"))
    mine = AgentVersion.objects.order_by().filter(wanted, agent_id=agent_id, agent__in=agents)
    return mine.values_list(*Key._fields, "agent__active_version", "agent__head_version")


def _these(variant: None, ids: str) -> Any:
    return version_rows(AgentVersion.objects.order_by().filter(pk__in=json_array_items(ids, "uuid")))


HEAD = CompiledQuery(_head, agent_id=str, **CALLER_PARAMS)
PAGE = CompiledQuery(_page, agent_id=str)
PAIR_QUERY = CompiledQuery(_some, agent_id=str, a=UUID, b=UUID, **CALLER_PARAMS)
THESE = CompiledQuery(_these, ids=str)
