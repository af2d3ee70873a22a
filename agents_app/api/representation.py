"""JSON texts of agents for API responses. Snapshots are inserted as they are stored."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from json.encoder import encode_basestring as quoted
from typing import Any, NamedTuple, Self

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Count, Func, QuerySet, TextField, Value
from django.db.models.functions import Cast
from django.db.models.sql.compiler import SQLCompiler

from access_app.caller import Caller
from access_app.caller_params import CallerParam
from agentcms.db.statements.compiled_query import compiled_query
from agentcms.wire.canonical import merge_json_objects, sha256_hex
from agentcms.wire.timestamps import format_timestamp
from agentcms.wire.unknown_names import UnknownName
from agents_app.configuration.acp_agents import ACP_PREFIX
from agents_app.configuration.references import (
    FIELD_KINDS,
    NO_AGENTS,
    OWNED_FIELDS,
    MissingReference,
    StoredAgents,
    find_missing_references,
    find_unregistered_references,
)
from agents_app.models import Agent, AgentQuerySet
from agents_app.models.version_protocol import Version
from agents_app.registry import Kind, registry
from versions_app.models.version import get_head_version, get_live_version

# Staff may have added or removed the provider, a scorer, an MCP server, a knowledge base or an ACP agent.
STAFF_KINDS = (Kind.MODEL_PROVIDER, Kind.SCORER, Kind.MCP_TOOL, Kind.KNOWLEDGE)
CHANGING_FIELDS = tuple(field for field, kind in FIELD_KINDS.items() if kind in STAFF_KINDS)
CHANGING_NAMES = (*(f'"field":"{field}"' for field in CHANGING_FIELDS), f'"key":"{ACP_PREFIX}')
MAX_CACHED_REFERENCES = 4000  # characters
STORED_NAMES = tuple(f'"{field}"' for field in ("agents", "scorers", *OWNED_FIELDS))


class AgentRow(NamedTuple):
    """The columns of an agent in a response. `snapshot` and `references` are those of the version it shows."""

    id: str
    owner_id: str
    row_key: str
    revision: int
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None
    live_id: str
    live_number: int
    live_hash: str
    head_id: str
    head_number: int
    head_hash: str
    resolved_id: str
    snapshot: str
    references: str  # JSON

    @classmethod
    def of(cls, agent: Agent, version: Version) -> Self:
        """Return the row of a loaded agent that shows one of its versions."""
        live, head = get_live_version(agent), get_head_version(agent)
        own = (
            agent.pk,
            agent.owner_id,
            agent.row_key,
            agent.revision,
            agent.created_at,
            agent.updated_at,
            agent.archived_at,
        )
        live_row = (str(live.pk), live.version_number, live.snapshot_hash)
        head_row = (str(head.pk), head.version_number, head.snapshot_hash)
        return cls(*own, *live_row, *head_row, str(version.id), version.snapshot_text, json.dumps(version.references))


class UUIDText(Func):
    """A UUID as the text of a response. Parsing and formatting UUIDs took a tenth of the time of a list."""

    output_field = TextField()
    template = "(%(expressions)s)::text"
    arity = 1

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Any:
        column, parameters = compiler.compile(self.source_expressions[0])
        # SQLite stores 32 digits without hyphens.
        groups = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
        text = " || '-' || ".join(f"substr({column}, {start}, {count})" for start, count in groups)
        return text, parameters * len(groups)


AGENT_COLUMNS = AgentRow._fields[:7]


def _version_columns(relation: str) -> tuple[Any, ...]:
    return UUIDText(f"{relation}__pk"), f"{relation}__version_number", f"{relation}__snapshot_hash"


def agent_rows(agents: AgentQuerySet, relation: str) -> QuerySet[Agent, Any]:
    """Select the columns of AgentRow. `relation` leads to the version that each agent shows."""
    versions = (*_version_columns("active_version"), *_version_columns("head_version"))
    # References stay JSON text: most rows need no parsed references.
    references = Cast(f"{relation}__references", TextField())
    return agents.filter(active_version__isnull=False).values_list(
        *AGENT_COLUMNS, *versions, UUIDText(f"{relation}__pk"), f"{relation}__snapshot_text", references
    )


@compiled_query
def agent_row(relation: str, *, user: CallerParam, agent_id: str) -> QuerySet[Agent, Any]:
    return agent_rows(Agent.objects.for_user(user).filter(pk=agent_id).order_by(), relation)


@compiled_query
def agent_rows_by_id(relation: str, *, user: CallerParam, agent_ids: list[str]) -> QuerySet[Agent, Any]:
    return agent_rows(Agent.objects.for_user(user).with_ids(agent_ids).order_by(), relation)


@compiled_query
def agent_total(*, user: CallerParam) -> QuerySet[Agent, Any]:
    """Count all agents that the user may see, except archived ones."""
    agents = Agent.objects.for_user(user).without_archived().filter(active_version__isnull=False).order_by()
    # `values()` with a constant turns the aggregate into a queryset of one row.
    return agents.values(one=Value(1)).annotate(total=Count("pk")).values_list("total", flat=True)


def find_row(user: Caller, agent_id: str, relation: str) -> AgentRow | None:
    """Return an agent that the user may see, with the version of this relation."""
    columns = agent_row.first(relation, user=user, agent_id=agent_id)
    return AgentRow(*columns) if columns else None


def find_row_of_version(user: Caller, agent_id: str, **version: Any) -> AgentRow | None:
    """Return an agent that the user may see, with the version that has these columns."""
    conditions = {f"versions__{column}": value for column, value in version.items()}
    agents = Agent.objects.for_user(user).filter(pk=agent_id, **conditions).order_by()
    columns = agent_rows(agents, "versions").first()
    return AgentRow(*columns) if columns else None


def agent_etag(row: AgentRow, warnings: str) -> str:
    """Return the ETag of an agent with its own warnings, as `own_warnings_json` returns them.

    The last part is that of the registry and the warnings, which change without a new revision.
    """
    # Warnings also depend on sub-agents and on what staff added: the registry's fingerprint does not cover these.
    surroundings = registry.fingerprint if warnings == "[]" else sha256_hex(registry.fingerprint + warnings)[:8]
    return f'"{row.row_key}.{row.revision}.{surroundings}"'


class AgentText(NamedTuple):
    """An agent as JSON text without its warnings, which also depend on other agents and on settings of staff."""

    id: str
    owner_id: str
    row_key: str
    revision: int
    references: str  # JSON
    text: str  # JSON up to the warnings

    @classmethod
    def of(cls, row: AgentRow) -> Self:
        draft = "true" if row.head_hash != row.live_hash else "false"
        archived = f'"{format_timestamp(row.archived_at)}"' if row.archived_at else "null"
        status = "archived" if row.archived_at else "published"
        state = (
            f'{{"ownerId":{quoted(row.owner_id)},"activeVersionId":"{row.live_id}",'
            f'"activeVersionNumber":{row.live_number},"headVersionId":"{row.head_id}",'
            f'"headVersionNumber":{row.head_number},"resolvedVersionId":"{row.resolved_id}","hasDraft":{draft},'
            f'"revision":{row.revision},"createdAt":"{format_timestamp(row.created_at)}",'
            f'"updatedAt":"{format_timestamp(row.updated_at)}","archivedAt":{archived},'
            f'"status":"{status}","warnings":}}'
        )
        # Without the last brace, before which `agents_json` adds the warnings.
        text = merge_json_objects(f'{{"id":{quoted(row.id)}}}', row.snapshot, state)
        return cls(row.id, row.owner_id, row.row_key, row.revision, row.references, text[:-1])


def agents_json(agents: Sequence[AgentText]) -> list[str]:
    """Return the JSON text of each agent. Takes a query if any of them has sub-agents."""
    known = known_agents(agents)
    fingerprint = registry.fingerprint
    return [
        f"{agent.text}{warnings_json(agent.references, fingerprint, known.get(agent.id, NO_AGENTS))}}}"
        for agent in agents
    ]


def agent_json(row: AgentRow, warnings: str, unknown: Sequence[UnknownName]) -> str:
    """Return the JSON text of an agent with its own warnings, and those about unknown names of the request."""
    if unknown:
        separator = "" if warnings == "[]" else ","
        warnings = f"{warnings[:-1]}{separator}{_to_json(unknown)[1:]}"
    return f"{AgentText.of(row).text}{warnings}}}"


def own_warnings_json(row: AgentRow) -> str:
    """Return the warnings of an agent itself as JSON. Takes a query if it has sub-agents."""
    known = known_agents([row]).get(row.id, NO_AGENTS)
    return warnings_json(row.references, registry.fingerprint, known)


def warnings_json(references: str, fingerprint: str, known: StoredAgents) -> str:
    """Return the warnings of a version as JSON; `fingerprint` is the registry's, `known` are stored sub-agents."""
    text: str = _uncached_if_long(_unregistered_json, references)(references, fingerprint, known)
    if text != "[]" and any(part in text for part in CHANGING_NAMES):
        return _to_json(find_missing_references(json.loads(references), known))
    return text


@lru_cache(maxsize=4096)
def _unregistered_json(references: str, fingerprint: str, known: StoredAgents) -> str:
    """Return the warnings that depend on code alone. `fingerprint` is only part of the cache key."""
    return _to_json(find_unregistered_references(json.loads(references), known))


def _to_json(warnings: Iterable[MissingReference | UnknownName]) -> str:
    return json.dumps([warning._asdict() for warning in warnings], ensure_ascii=False, separators=(",", ":"))


def known_agents(agents: Iterable[AgentText | AgentRow]) -> dict[str, StoredAgents]:
    """Return the owner and the stored sub-agents of each agent whose warnings depend on its owner."""
    named = {
        agent.id: (agent.owner_id, json.loads(agent.references).get("agents", ()))
        for agent in agents
        if _uncached_if_long(_has_stored_names, agent.references)(agent.references)
    }
    return Agent.objects.stored_among(named) if named else {}


@lru_cache(maxsize=4096)
def _has_stored_names(references: str) -> bool:
    return any(part in references for part in STORED_NAMES)


def _uncached_if_long(function: Any, references: str) -> Callable[..., Any]:
    """Return a cached function, or without its cache for a long text: caches are limited by the number of entries."""
    cached: Callable[..., Any] = function if len(references) <= MAX_CACHED_REFERENCES else function.__wrapped__
    return cached
