"""What the API answers of agents, as JSON text: the snapshot passes through as it is stored."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from json.encoder import encode_basestring as quoted
from typing import Any, NamedTuple, Self

from django.db.models import Count, Func, TextField, Value
from django.db.models.functions import Cast

from access_app.caller_params import CALLER_PARAMS, CallerKind, caller_params, placeholder_caller
from agentcms.db.compiled_query import CompiledQuery
from agentcms.wire.canonical import merge_json_objects
from agentcms.wire.timestamps import format_timestamp
from agents_app.configuration.references import MissingReference, find_missing_references, find_unregistered_references
from agents_app.models import Agent, AgentQuerySet
from agents_app.registry import registry


class AgentRow(NamedTuple):
    """The columns that an answer is made of; `snapshot` and `references` are those of the version it shows."""

    id: str
    owner_id: str
    row_key: str
    revision: int
    created_at: datetime
    updated_at: datetime
    live_id: str
    live_number: int
    live_hash: str
    head_id: str
    head_number: int
    head_hash: str
    shown_id: str
    snapshot: str
    references: str  # JSON

    @classmethod
    def of(cls, agent: Agent, version: Any) -> Self:
        """The row of an agent in hand, showing one of its versions."""
        live: Any = agent.active_version
        head: Any = agent.head_version
        own = (agent.pk, agent.owner_id, agent.row_key, agent.revision, agent.created_at, agent.updated_at)
        live_row = (str(live.pk), live.version_number, live.snapshot_hash)
        head_row = (str(head.pk), head.version_number, head.snapshot_hash)
        return cls(*own, *live_row, *head_row, str(version.pk), version.snapshot_text, json.dumps(version.references))

    @property
    def etag(self) -> str:
        return etag(self.row_key, self.revision)


OWN = ("id", "owner_id", "row_key", "revision", "created_at", "updated_at")


class UUIDText(Func):
    """An id as the wire has it, so that no driver reads and nobody writes it again: a tenth of a list's time."""

    output_field = TextField()
    template = "(%(expressions)s)::text"
    arity = 1

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        column, parameters = compiler.compile(self.source_expressions[0])
        ends = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
        return " || '-' || ".join(f"substr({column}, {start}, {count})" for start, count in ends), parameters * 5


def pointer(side: str) -> tuple[Any, ...]:
    """The columns of a version that an agent points to."""
    return UUIDText(f"{side}__pk"), f"{side}__version_number", f"{side}__snapshot_hash"


def agent_rows(agents: AgentQuerySet, shown: str = "active_version") -> Any:
    """The agents as Rows, in one query; `shown` is the relation whose snapshot they show."""
    pointers = (*pointer("active_version"), *pointer("head_version"))
    # As text: most rows need no parsing of it.
    references = Cast(f"{shown}__references", TextField())
    return agents.filter(active_version__isnull=False).values_list(
        *OWN, *pointers, UUIDText(f"{shown}__pk"), f"{shown}__snapshot_text", references
    )


def _total(kind: CallerKind, **caller: Any) -> Any:
    agents = Agent.objects.for_user(placeholder_caller(kind, **caller)).filter(active_version__isnull=False)
    return agents.order_by().values(one=Value(1)).annotate(total=Count("pk")).values_list("total")


COUNT_QUERY = CompiledQuery(_total, **CALLER_PARAMS)


def _row(variant: tuple[CallerKind, str], agent_id: str, **caller: Any) -> Any:
    kind, shown = variant
    return agent_rows(Agent.objects.for_user(placeholder_caller(kind, **caller)).filter(pk=agent_id).order_by(), shown)


ROW_QUERY = CompiledQuery(_row, agent_id=str, **CALLER_PARAMS)


def find_row(user: Any, agent_id: str, shown: str) -> AgentRow | None:
    """Return an agent that the user may see, showing the version of the relation `shown`."""
    rows = ROW_QUERY((CallerKind.of(user), shown), agent_id=agent_id, **caller_params(user))
    return AgentRow(*rows[0]) if rows else None


def at_version(user: Any, agent_id: str, **version: Any) -> AgentRow | None:
    """An agent that the caller may see, as one of its versions has it."""
    named = {f"versions__{column}": value for column, value in version.items()}
    found = agent_rows(Agent.objects.for_user(user).filter(pk=agent_id, **named).order_by(), "versions").first()
    return AgentRow(*found) if found else None


def etag(row_key: str, revision: int) -> str:
    """Names this state of an agent; the registry counts because warnings are part of the answer."""
    return f'"{row_key}.{revision}.{registry.fingerprint}"'


class AgentText(NamedTuple):
    """What an answer says of an agent but for its warnings, which other agents and staff change too."""

    id: str
    owner_id: str
    row_key: str
    revision: int
    references: str  # JSON
    text: str  # JSON, up to the warnings

    @classmethod
    def of(cls, row: AgentRow) -> Self:
        draft = "true" if row.head_hash != row.live_hash else "false"
        rest = (
            f'{{"ownerId":{quoted(row.owner_id)},"activeVersionId":"{row.live_id}",'
            f'"activeVersionNumber":{row.live_number},"headVersionId":"{row.head_id}",'
            f'"headVersionNumber":{row.head_number},"resolvedVersionId":"{row.shown_id}","hasDraft":{draft},'
            f'"revision":{row.revision},"createdAt":"{format_timestamp(row.created_at)}",'
            f'"updatedAt":"{format_timestamp(row.updated_at)}","warnings":}}'
        )
        text = merge_json_objects(f'{{"id":{quoted(row.id)}}}', row.snapshot, rest)
        return cls(row.id, row.owner_id, row.row_key, row.revision, row.references, text[:-1])


def agents_json(shown: Sequence[AgentText]) -> list[str]:
    """Each agent as JSON text; one more query where any of them names sub-agents."""
    known = known_agents(shown)
    registered = registry.fingerprint
    return [f"{told.text}{warnings_json(told.references, registered, known.get(told.id, ()))}}}" for told in shown]


def agent_json(row: AgentRow) -> str:
    """One agent as JSON text."""
    return agents_json([AgentText.of(row)])[0]


def warnings_json(references: str, fingerprint: str, known: tuple[str, ...]) -> str:
    """The warnings of a version as JSON; `fingerprint` is the registry's."""
    text = unregistered_text(references, fingerprint, known)
    if '"field":"model"' in text:  # staff may keep the provider, since a moment ago or until one
        return warnings_text(find_missing_references(json.loads(references), known))
    return text


@lru_cache(maxsize=4096)
def unregistered_text(references: str, fingerprint: str, known: tuple[str, ...]) -> str:
    """What the code alone says; `fingerprint` changes with it, so that what is kept here stays true."""
    return warnings_text(find_unregistered_references(json.loads(references), known))


def warnings_text(found: Iterable[MissingReference]) -> str:
    return json.dumps([warning._asdict() for warning in found], ensure_ascii=False, separators=(",", ":"))


def known_agents(shown: Iterable[AgentText | AgentRow]) -> dict[str, tuple[str, ...]]:
    """By agent that names any, the stored agents among them that it may use."""
    named = {
        each.id: (each.owner_id, json.loads(each.references)["agents"])
        for each in shown
        if '"agents"' in each.references
    }
    return Agent.objects.usable_among(named) if named else {}
