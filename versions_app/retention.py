"""Retention: the removal of versions over the limit of their agent or past the age of their owner."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection
from django.dispatch import Signal
from django.utils import timezone

from agentcms.db.statements.write_batch import WriteBatch
from versions_app.models.retention_rule import RetentionRule

pruned = Signal()  # sent with `count` after versions were deleted, inside the transaction

# The reasons to keep a version, as SQL conditions on the agent `a` and its version `v`.
# The previously live version stays as the target of an undo.
PROTECTION_REASONS = {
    "live": "v.id = a.active_version_id",
    "head": "v.id = a.head_version_id",
    "previously live": """v.id = (
        SELECT n.from_version_id FROM versions_app_activation n WHERE n.agent_id = a.id ORDER BY n.id DESC LIMIT 1
    )""",
    "pinned": "v.pinned",
}
IS_PROTECTED = f"COALESCE({' OR '.join(PROTECTION_REASONS.values())}, false)"
# The limit of an agent: its owner's rule, else the parameter.
ALLOWED_VERSIONS_SQL = (
    "COALESCE((SELECT r.versions FROM versions_app_retentionrule r WHERE r.owner_id = a.owner_id), %s)"
)

# One index scan per agent: 15 to 30 times faster than a window function over all versions.
# One agent is compared by `=`: PostgreSQL plans `ANY` of a list every time, which takes longer than pruning.
LATERAL = f"""
    SELECT surplus.id FROM agents_app_agent a
    CROSS JOIN LATERAL (SELECT {ALLOWED_VERSIONS_SQL} AS allowed) rule
    CROSS JOIN LATERAL (SELECT count(*) AS total FROM versions_app_agentversion WHERE agent_id = a.id) counted
    CROSS JOIN LATERAL (
        SELECT v.id FROM versions_app_agentversion v
        WHERE v.agent_id = a.id AND counted.total > rule.allowed AND NOT {IS_PROTECTED}
        ORDER BY v.version_number LIMIT GREATEST(counted.total - rule.allowed, 0)
    ) surplus
    WHERE a.id = """  # noqa: S608  no input in it

_REASON_CASES = " ".join(f"WHEN {condition} THEN '{reason}'" for reason, condition in PROTECTION_REASONS.items())
RANKED = f"""
    SELECT v.id AS id, v.agent_id AS agent_id, v.version_number AS version_number, {ALLOWED_VERSIONS_SQL} AS allowed,
        CASE {_REASON_CASES} END AS protection,
        {{aged}} AS aged, count(*) OVER (PARTITION BY v.agent_id) AS total,
        sum(CASE WHEN {IS_PROTECTED} THEN 0 ELSE 1 END)
            OVER (PARTITION BY v.agent_id ORDER BY v.version_number) AS position
    FROM versions_app_agentversion v JOIN agents_app_agent a ON a.id = v.agent_id
    WHERE v.agent_id IN ({{agents}})"""  # noqa: S608  no input in it


def prune_in_batch(agent_id: str, batch: WriteBatch) -> None:
    """Add the deletion of an agent's surplus versions to the writes that make a new one.

    A statement of its own would wait as long as the deletion takes.
    """
    surplus, parameters = _surplus([agent_id], settings.AGENT_VERSION_LIMIT)
    batch.execute(_deletion(surplus), parameters, _send_pruned)


def delete_surplus(agent_ids: Sequence[str], limit: int) -> int:
    """Delete the oldest unprotected versions over the limit of these agents, and return how many.

    The caller holds the agents' locks. The models send no signal.
    """
    return _delete(*_surplus(agent_ids, limit))


def delete_aged(agent_ids: Sequence[str]) -> int:
    """Delete the unprotected versions of these agents past their owner's age, and return how many.

    The caller holds the agents' locks.
    """
    condition, cutoffs = _age_condition()
    if not cutoffs:
        return 0
    agents, ids = _agent_list(agent_ids)
    aged = f"""
        SELECT v.id FROM versions_app_agentversion v JOIN agents_app_agent a ON a.id = v.agent_id
        WHERE v.agent_id IN ({agents}) AND NOT {IS_PROTECTED} AND ({condition})"""  # noqa: S608
    return _delete(aged, [ids, *cutoffs])


def explain_retention(agent_ids: Sequence[str], limit: int) -> Iterator[tuple[str, int, str]]:
    """Yield agent, version number and verdict of every version: `surplus`, `too old` or the reason to keep it."""
    ranked, parameters = _ranked(agent_ids, limit, *_age_condition())
    with connection.cursor() as cursor:
        cursor.execute(
            f"""SELECT agent_id, version_number, CASE WHEN protection IS NOT NULL THEN protection
                WHEN position <= total - allowed THEN 'surplus' WHEN aged THEN 'too old' ELSE 'within the limit' END
            FROM ({ranked}) AS r ORDER BY agent_id, version_number""",  # noqa: S608
            parameters,
        )
        yield from cursor.fetchall()


def _surplus(agent_ids: Sequence[str], limit: int) -> tuple[str, list[Any]]:
    """Return the SQL of the IDs of the versions over the limit, and its parameters."""
    if connection.vendor == "postgresql":
        is_single = len(agent_ids) == 1
        return LATERAL + ("%s" if is_single else "ANY(%s)"), [limit, agent_ids[0] if is_single else list(agent_ids)]
    ranked, parameters = _ranked(agent_ids, limit, "false", [])  # SQLite has no LATERAL
    return f"SELECT id FROM ({ranked}) AS r WHERE protection IS NULL AND position <= total - allowed", parameters  # noqa: S608


def _delete(selection: str, parameters: Sequence[Any]) -> int:
    counts = list[int]()
    WriteBatch().execute(_deletion(selection), parameters, counts.append).send()
    _send_pruned(counts[0])
    return counts[0]


def _deletion(selection: str) -> str:
    return f"DELETE FROM versions_app_agentversion WHERE id IN ({selection}) RETURNING 1"  # noqa: S608


def _send_pruned(count: int) -> None:
    if count:
        pruned.send(None, count=count)


def _ranked(agent_ids: Sequence[str], limit: int, aged: str, cutoffs: Sequence[Any]) -> tuple[str, list[Any]]:
    """Return the SQL of these agents' versions with their protection and their position among the unprotected."""
    agents, ids = _agent_list(agent_ids)
    return RANKED.format(agents=agents, aged=f"({aged})"), [limit, *cutoffs, ids]


def _agent_list(agent_ids: Sequence[str]) -> tuple[str, list[str] | str]:
    """Return the IDs as a subquery and its parameter."""
    if connection.vendor == "postgresql":
        return "SELECT unnest(%s::text[])", list(agent_ids)
    return "SELECT value FROM json_each(%s)", json.dumps(list(agent_ids))


def _age_condition() -> tuple[str, list[Any]]:
    """Return the SQL condition that a version is past its owner's age, and its parameters, empty without any age."""
    rules = dict(RetentionRule.objects.filter(days__gt=0).values_list("owner_id", "days"))
    conditions = ["a.owner_id = %s AND v.created_at < %s"] * len(rules)
    parameters = [value for owner_id, days in rules.items() for value in (owner_id, _days_ago(days or 0))]
    if settings.AGENT_VERSION_DAYS:
        others = "a.owner_id NOT IN (SELECT r.owner_id FROM versions_app_retentionrule r WHERE r.days IS NOT NULL)"
        conditions.append(f"{others} AND v.created_at < %s")
        parameters.append(_days_ago(settings.AGENT_VERSION_DAYS))
    return " OR ".join(f"({condition})" for condition in conditions) or "false", parameters


def _days_ago(days: int) -> object:
    # A rule may have more days than the calendar.
    cutoff: datetime = timezone.now() - timedelta(days=min(days, settings.MAX_DAYS))
    return connection.ops.adapt_datetimefield_value(cutoff)
