"""The search index: the columns by which lists filter, search and sort, one row for each state of an agent."""

from __future__ import annotations

import json
from collections.abc import Collection
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Self

from django.db import connection, models
from django.db.models.expressions import RawSQL

from agentcms.db.column_values import ColumnValues
from agentcms.db.statements import write_batch
from agentcms.wire.canonical import canonical, json_equal
from agentcms.wire.json_types import JSONMapping
from agents_app.search.tokenizer import Term, index_text, is_sign, parse_search

if TYPE_CHECKING:
    from agents_app.models import Agent

SEARCHED_FIELDS = ("name", "description", "instructions")
INDEXED_FIELDS = ("metadata", "agents", *SEARCHED_FIELDS)
TAGS_KEY = "tags"  # of the metadata: a list of texts
INDEX_TABLE = "agents_app_agentindex"
FTS_TABLE = "agents_app_words"

REFERENCES_SQL = {
    # A join by `@>`, which reads the index of the column once for each ID.
    "postgresql": f"""
        SELECT DISTINCT k.key, a.id, a.owner_id FROM unnest(%s::text[]) AS k(key)
        JOIN {INDEX_TABLE} i ON i.agents @> jsonb_build_array(k.key) JOIN agents_app_agent a ON a.id = i.agent_id
    """,  # noqa: S608
    "sqlite": f"""
        SELECT DISTINCT e.value, a.id, a.owner_id FROM {INDEX_TABLE} i JOIN json_each(i.agents) e
        JOIN agents_app_agent a ON a.id = i.agent_id WHERE e.value IN (SELECT value FROM json_each(%s))
    """,  # noqa: S608
}

POSTGRESQL_TSVECTOR = "array_to_tsvector(string_to_array(words, ' '))"


class AgentIndexQuerySet(models.QuerySet["AgentIndex"]):
    def search(self, query: str) -> Self:
        """Return the rows with every word and phrase of a query. The last word may be a prefix."""
        terms = parse_search(query)
        return self.filter(pk__in=_matching(terms)) if terms else self

    def with_metadata(self, metadata: JSONMapping) -> Self:
        """Return the rows whose metadata has the same JSON value at each path of the given one."""
        if not metadata:
            return self
        if connection.vendor != "postgresql":
            containing = f"SELECT id FROM {INDEX_TABLE} WHERE json_holds(metadata, %s)"  # noqa: S608
            return self.filter(pk__in=RawSQL(containing, [_json(metadata)]))  # noqa: S611
        rows = self.filter(metadata__contains=metadata)
        # Lists and objects are compared again: `@>` accepts those with more in them.
        exact = [(path, _json(value)) for path, value in json_leaves(metadata) if isinstance(value, list | dict)]
        if not exact:
            return rows
        # One subquery: PostgreSQL plans minutes over hundreds of them.
        equal = " AND ".join(["metadata #> %s::text[] = %s::jsonb"] * len(exact))
        matching = f"SELECT id FROM {INDEX_TABLE} WHERE {equal}"  # noqa: S608
        return rows.filter(pk__in=RawSQL(matching, [*chain(*exact)]))  # noqa: S611

    def with_tag(self, tag: str) -> Self:
        """Return the rows whose `metadata.tags` is a list that has the tag."""
        if connection.vendor == "postgresql":
            return self.filter(metadata__contains={TAGS_KEY: [tag]})
        # With the types: `json_each` also yields a value that is not a list, and an inner list or object as its text.
        tagged = (
            f"SELECT i.id FROM {INDEX_TABLE} i, json_each(i.metadata, '$.{TAGS_KEY}') e"  # noqa: S608
            f" WHERE e.value = %s AND e.type = 'text' AND json_type(i.metadata, '$.{TAGS_KEY}') = 'array'"
        )
        return self.filter(pk__in=RawSQL(tagged, [tag]))  # noqa: S611

    def referencing(self, agent_id: str) -> Self:
        """Return the rows that refer to an agent as a sub-agent."""
        if connection.vendor == "postgresql":
            return self.filter(agents__contains=[agent_id])
        referencing = f"SELECT i.id FROM {INDEX_TABLE} i, json_each(i.agents) e WHERE e.value = %s"  # noqa: S608
        return self.filter(pk__in=RawSQL(referencing, [agent_id]))  # noqa: S611


class AgentIndex(models.Model):
    """A state of an agent: its live version, its head, or both if they are equal."""

    id = models.BigAutoField(primary_key=True)
    # The index is declared below: Django would make a second one on PostgreSQL, for LIKE.
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


def index_columns(agent_id: str, snapshot: JSONMapping) -> ColumnValues:
    """Return the columns of the index for a snapshot."""
    return {
        "name": snapshot["name"],
        "metadata": snapshot["metadata"],
        "agents": snapshot["agents"],
        "words": index_text(agent_id, *(snapshot[field] for field in SEARCHED_FIELDS)),
    }


def find_references_to(agent_ids: Collection[str]) -> list[tuple[str, str, str]]:
    """Return which agents refer to these as sub-agents: the ID of one of these, and the ID and owner of the other."""
    is_postgresql = connection.vendor == "postgresql"
    ids = list(agent_ids)
    with connection.cursor() as cursor:
        cursor.execute(REFERENCES_SQL[connection.vendor], [ids if is_postgresql else _json(ids)])
        return list(cursor.fetchall())


def update_index(agent: Agent, before: JSONMapping | None, batch: write_batch.WriteBatch) -> None:
    """Add to a batch what the index of an agent needs after its pointers moved.

    `before` is the snapshot of the only row that the agent had, or None if it had none or two.
    """
    head = agent.head_version
    if before is None or head is None or agent.has_draft:
        replace_index_rows(agent, batch)
        return
    if all(json_equal(before[name], head.snapshot[name]) for name in INDEXED_FIELDS):
        return

    def repair(count: int) -> None:
        # No row was there to update, as after a change by raw SQL.
        if not count:
            rebuild_index(agent)

    batch.update(AgentIndex, "agent_id", agent.pk, index_columns(agent.pk, head.snapshot), repair)


def index_states(agent: Agent) -> list[ColumnValues]:
    """Return the columns of the rows that an agent should have: the live version, and a head that differs."""
    states = [(agent.active_version, True, not agent.has_draft)]
    if agent.has_draft:
        states.append((agent.head_version, False, True))
    return [
        {"is_live": is_live, "is_head": is_head, **index_columns(agent.pk, version.snapshot)}
        for version, is_live, is_head in states
        if version is not None
    ]


def rebuild_index(agent: Agent) -> None:
    """Replace the rows of an agent. The caller holds its lock."""
    # At once: a repair runs after the batch that found the row missing was sent.
    batch = write_batch.WriteBatch()
    replace_index_rows(agent, batch)
    batch.send()


def replace_index_rows(agent: Agent, batch: write_batch.WriteBatch) -> None:
    """Delete the rows of an agent and add the new ones to a batch."""
    AgentIndex.objects.filter(agent_id=agent.pk).delete()
    for state in index_states(agent):
        batch.insert(AgentIndex(agent_id=agent.pk, **state))


def index_is_current(agent: Agent) -> bool:
    """Return whether the rows of an agent match its versions. `agent.index` may be prefetched."""
    states = index_states(agent)
    rows = [{name: getattr(row, name) for name in states[0]} for row in agent.index.all()]
    return sorted(map(canonical, rows)) == sorted(map(canonical, states))


def json_leaves(value: JSONMapping, path: tuple[str, ...] = ()) -> list[tuple[list[str], Any]]:
    """Return the path and the value of each leaf of a JSON object. Empty objects and lists are leaves."""
    leaves: list[tuple[list[str], Any]] = []
    for key, item in value.items():
        if isinstance(item, dict) and item:
            leaves += json_leaves(item, (*path, key))
        else:
            leaves.append(([*path, key], item))
    return leaves


def json_contains(metadata: str, expected: str) -> bool:
    """Return whether a JSON text has the leaves of another. SQLite calls it as `json_holds`."""
    value = json.loads(metadata)
    return all(_at(value, path) == canonical(leaf) for path, leaf in json_leaves(json.loads(expected)))


def _at(value: object, path: list[str]) -> str | None:
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return None
        value = value[key]
    return canonical(value)


def _matching(terms: list[Term]) -> RawSQL:
    """Return the IDs of the rows with all words, by the full-text index, and all phrases, by LIKE."""
    is_postgresql = connection.vendor == "postgresql"
    # FTS5 does not index signs, so LIKE finds them too.
    unindexed = [word for term in terms for word in term.words if not is_postgresql and is_sign(word)]
    phrases = [term for term in terms if len(term.words) > 1 or not {*unindexed}.isdisjoint(term.words)]
    words = [
        (word, term.prefix and n == len(term.words) - 1)
        for term in terms
        for n, word in enumerate(term.words)
        if word not in unindexed
    ]
    find = _in_tsvector if is_postgresql else _in_fts5
    source, condition, query = find(words) if words else (INDEX_TABLE, "", "")
    likes = [f"' ' || {INDEX_TABLE}.words || ' ' LIKE %s"] * len(phrases)
    where = " AND ".join(filter(None, [condition, *likes]))
    patterns = [f"% {' '.join(term.words)}{'' if term.prefix else ' '}%" for term in phrases]
    return RawSQL(f"SELECT id FROM {source} WHERE {where}", [*filter(None, [query]), *patterns])  # noqa: S608, S611


def _in_tsvector(words: list[tuple[str, bool]]) -> tuple[str, str, str]:
    """Return the table, the condition and its parameter by which PostgreSQL finds all words. True for a prefix."""
    # Words have only letters, digits, combining marks and signs of their scripts, so nothing needs an escape.
    query = " & ".join(f"'{word}'{':*' if is_prefix else ''}" for word, is_prefix in words)
    return INDEX_TABLE, f"{POSTGRESQL_TSVECTOR} @@ %s::tsquery", query


def _in_fts5(words: list[tuple[str, bool]]) -> tuple[str, str, str]:
    """Do what `_in_tsvector` does for SQLite."""
    query = " AND ".join(f'"{word}"{"*" if is_prefix else ""}' for word, is_prefix in words)
    return f"{FTS_TABLE} JOIN {INDEX_TABLE} ON id = {FTS_TABLE}.rowid", f"{FTS_TABLE} MATCH %s", query


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
