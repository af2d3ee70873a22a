"""What lists filter, search and sort by: one row per state of an agent, kept by the history as it moves pointers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import chain
from typing import Any, ClassVar, Self

from django.db import connection, models
from django.db.models.expressions import RawSQL

from agentcms.db import write_batch
from agentcms.wire.canonical import canonical, json_equal
from agents_app.search.tokenizer import Term, index_text, parse_search

SEARCHED = ("name", "description", "instructions")
TABLE = "agents_app_agentindex"
FTS = "agents_app_words"

POSTGRESQL_WORDS = "array_to_tsvector(string_to_array(words, ' '))"


class AgentIndexQuerySet(models.QuerySet["AgentIndex"]):
    def search(self, typed: str) -> Self:
        """Those that hold every word and phrase typed, the last word as a prefix."""
        wanted = parse_search(typed)
        return self.filter(pk__in=_holding(wanted)) if wanted else self

    def with_metadata(self, wanted: Mapping[str, Any]) -> Self:
        """Those whose metadata holds the same JSON value at each path that `wanted` has."""
        if not wanted:
            return self
        if connection.vendor != "postgresql":
            holding = f"SELECT id FROM {TABLE} WHERE json_holds(metadata, %s)"  # noqa: S608
            return self.filter(pk__in=RawSQL(holding, [_text(wanted)]))  # noqa: S611
        found = self.filter(metadata__contains=wanted)
        # Containment would be content with more than was asked for in these.
        exact = [(path, _text(value)) for path, value in leaves(wanted) if isinstance(value, list | dict)]
        if not exact:
            return found
        # In one statement: a planner takes minutes over hundreds.
        same = " AND ".join(["metadata #> %s::text[] = %s::jsonb"] * len(exact))
        holding = f"SELECT id FROM {TABLE} WHERE {same}"  # noqa: S608
        return found.filter(pk__in=RawSQL(holding, [*chain(*exact)]))  # noqa: S611

    def referencing(self, agent_id: str) -> Self:
        """Those that name an agent as a sub-agent."""
        if connection.vendor == "postgresql":
            return self.filter(agents__contains=[agent_id])
        named = f"SELECT i.id FROM {TABLE} i, json_each(i.agents) e WHERE e.value = %s"  # noqa: S608
        return self.filter(pk__in=RawSQL(named, [agent_id]))  # noqa: S611


class AgentIndex(models.Model):
    """One state of an agent: what is live, its head, or both where they say the same."""

    id = models.BigAutoField(primary_key=True)
    agent = models.ForeignKey("agents_app.Agent", models.CASCADE, related_name="index", db_index=False)
    is_live = models.BooleanField()
    is_head = models.BooleanField()
    name = models.CharField(max_length=200)
    metadata = models.JSONField()
    agents = models.JSONField()
    words = models.TextField()

    objects = AgentIndexQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["agent"], condition=models.Q(is_live=True), name="one_live_state"),
            models.UniqueConstraint(fields=["agent"], condition=models.Q(is_head=True), name="one_head_state"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["agent"], name="agent_index_agent"),
            models.Index(fields=["name", "agent"], name="agent_index_name"),
        ]

    def __str__(self) -> str:
        return f"{self.agent_id}: {' and '.join(name for name in ('live', 'head') if getattr(self, f'is_{name}'))}"


def index_columns(agent_id: str, snapshot: Mapping[str, Any]) -> dict[str, Any]:
    """What the index keeps of a snapshot."""
    return {
        "name": snapshot["name"],
        "metadata": snapshot["metadata"],
        "agents": snapshot["agents"],
        "words": index_text(agent_id, *(snapshot[field] for field in SEARCHED)),
    }


def update_index(agent: Any, before: Mapping[str, Any] | None, writes: write_batch.WriteBatch) -> None:
    """Let the index follow an agent whose pointers move; `before` is what its only state said, if it had one."""
    head = agent.head_version
    if before is not None and not agent.has_draft:
        kept = ("metadata", "agents", *SEARCHED)
        if all(json_equal(before[name], head.snapshot[name]) for name in kept):
            return
        said = index_columns(agent.pk, head.snapshot)
        writes.update(AgentIndex, "agent_id", agent.pk, said, lambda found: None if found else rebuild(agent))
        return
    fill(agent, writes)


def states(agent: Any) -> list[dict[str, Any]]:
    """The columns of each row that the index should have of an agent: of live, and of a head that differs."""
    live, head = agent.active_version, agent.head_version
    shown = [(live, True, not agent.has_draft)] + ([(head, False, True)] if agent.has_draft else [])
    return [
        {"is_live": is_live, "is_head": is_head, **index_columns(agent.pk, version.snapshot)}
        for version, is_live, is_head in shown
    ]


def rebuild(agent: Any) -> None:
    """Write the rows of an agent anew; the caller holds its lock."""
    writes = write_batch.WriteBatch()
    fill(agent, writes)
    writes.send()


def fill(agent: Any, writes: write_batch.WriteBatch) -> None:
    AgentIndex.objects.filter(agent_id=agent.pk).delete()
    for state in states(agent):
        writes.insert(AgentIndex(agent_id=agent.pk, **state))


def is_kept(agent: Any) -> bool:
    """Whether the index says of an agent what its versions say; `agent.index` may have been prefetched."""
    wanted = states(agent)
    found = [{name: getattr(row, name) for name in wanted[0]} for row in agent.index.all()]
    return sorted(map(canonical, found)) == sorted(map(canonical, wanted))


def leaves(wanted: Mapping[str, Any], path: tuple[str, ...] = ()) -> list[tuple[list[str], Any]]:
    """Each path that a filter names, with the value asked for there."""
    found: list[tuple[list[str], Any]] = []
    for key, value in wanted.items():
        if isinstance(value, dict) and value:
            found += leaves(value, (*path, key))
        else:
            found.append(([*path, key], value))
    return found


def json_contains(metadata: str, wanted: str) -> bool:
    """Whether a JSON text holds what another asks for; SQLite calls it as `json_holds`."""
    value, asked = json.loads(metadata), json.loads(wanted)
    return all(_at(value, path) == canonical(expected) for path, expected in leaves(asked))


def _at(value: Any, path: list[str]) -> str | None:
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return None
        value = value[key]
    return canonical(value)


def _holding(wanted: list[Term]) -> RawSQL:
    """The ids of the rows that hold every word, by the database's own index, and every phrase, by the text."""
    words = [(word, term.prefix and n == len(term.words) - 1) for term in wanted for n, word in enumerate(term.words)]
    if connection.vendor == "postgresql":
        query = " & ".join(f"'{word}'{':*' if begins else ''}" for word, begins in words)
        source, match = TABLE, f"{POSTGRESQL_WORDS} @@ %s::tsquery"
    else:
        query = " AND ".join(f'"{word}"{"*" if begins else ""}' for word, begins in words)
        source, match = f"{FTS} JOIN {TABLE} ON id = {FTS}.rowid", f"{FTS} MATCH %s"
    phrases = [f"% {' '.join(term.words)}{'' if term.prefix else ' '}%" for term in wanted if len(term.words) > 1]
    beside = f" AND ' ' || {TABLE}.words || ' ' LIKE %s" * len(phrases)
    return RawSQL(f"SELECT id FROM {source} WHERE {match}{beside}", [query, *phrases])  # noqa: S608, S611


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
