"""Which versions may go: the oldest of an agent that has more than its limit, and those past their owner's age."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection
from django.dispatch import Signal
from django.utils import timezone

from agentcms.db.write_batch import WriteBatch
from versions_app.models.retention_rule import RetentionRule

pruned = Signal()  # count: so many versions went, in the transaction at hand


# Why a version stays, as SQL over the agent `a` and its version `v`; the only definition.
# The version live before this one stays so that undo has a target.
PROTECTION_REASONS = {
    "live": "v.id = a.active_version_id",
    "head": "v.id = a.head_version_id",
    "previously live": """v.id = (
        SELECT n.from_version_id FROM versions_app_activation n WHERE n.agent_id = a.id ORDER BY n.id DESC LIMIT 1
    )""",
    "pinned": "v.pinned",
}
IS_PROTECTED = f"COALESCE({' OR '.join(PROTECTION_REASONS.values())}, false)"
# How many versions an agent keeps: its owner's rule, else the limit.
ALLOWED = "COALESCE((SELECT r.versions FROM versions_app_retentionrule r WHERE r.owner_id = a.owner_id), %s)"

# One walk of the agent's index per agent: measured 15 to 30 times quicker than a window over all versions.
# For one agent `=`, because PostgreSQL never keeps a plan for ANY of a list: planning took longer than pruning.
LATERAL = f"""
    SELECT surplus.id FROM agents_app_agent a
    CROSS JOIN LATERAL (SELECT {ALLOWED} AS allowed) rule
    CROSS JOIN LATERAL (SELECT count(*) AS total FROM versions_app_agentversion WHERE agent_id = a.id) counted
    CROSS JOIN LATERAL (
        SELECT v.id FROM versions_app_agentversion v
        WHERE v.agent_id = a.id AND counted.total > rule.allowed AND NOT {IS_PROTECTED}
        ORDER BY v.version_number LIMIT GREATEST(counted.total - rule.allowed, 0)
    ) surplus
    WHERE a.id = """  # noqa: S608  no input in it

_REASON_CASES = " ".join(f"WHEN {condition} THEN '{reason}'" for reason, condition in PROTECTION_REASONS.items())
RANKED = f"""
    SELECT v.id AS id, v.agent_id AS agent_id, v.version_number AS version_number, {ALLOWED} AS allowed,
        CASE {_REASON_CASES} END AS spared,
        {{aged}} AS aged, count(*) OVER (PARTITION BY v.agent_id) AS total,
        sum(CASE WHEN {IS_PROTECTED} THEN 0 ELSE 1 END)
            OVER (PARTITION BY v.agent_id ORDER BY v.version_number) AS place
    FROM versions_app_agentversion v JOIN agents_app_agent a ON a.id = v.agent_id
    WHERE v.agent_id IN ({{agents}})"""  # noqa: S608  no input in it


def prune_in_batch(agent_id: str, batch: WriteBatch) -> None:
    """Add the deletion of an agent's surplus versions to the writes that make a new one.

    A statement of its own would wait as long as the deletion takes.
    """
    surplus, parameters = _surplus([agent_id], settings.AGENT_VERSION_LIMIT)
    batch.execute(_deletion(surplus), parameters, _tell)


def delete_surplus(agent_ids: Sequence[str], limit: int) -> int:
    """Delete the oldest versions over the limit of these agents that nothing spares; returns how many.

    The caller holds the agents' locks, so no pointer moves meanwhile. No model's signal is sent.
    """
    return _deleted(*_surplus(agent_ids, limit))


def delete_aged(agent_ids: Sequence[str]) -> int:
    """Delete the versions of these agents that are past their owner's age and nothing spares; returns how many.

    The caller holds the agents' locks.
    """
    condition, cutoffs = _aged()
    if not cutoffs:
        return 0
    agents, ids = _among(agent_ids)
    aged = f"""
        SELECT v.id FROM versions_app_agentversion v JOIN agents_app_agent a ON a.id = v.agent_id
        WHERE v.agent_id IN ({agents}) AND NOT {IS_PROTECTED} AND ({condition})"""  # noqa: S608
    return _deleted(aged, [ids, *cutoffs])


def explain_retention(agent_ids: Sequence[str], limit: int) -> Iterator[tuple[str, int, str]]:
    """Agent, version number and `surplus`, `too old` or why it stays, for every version of these agents."""
    ranked, parameters = _ranked(agent_ids, limit, *_aged())
    with connection.cursor() as cursor:
        cursor.execute(
            f"""SELECT agent_id, version_number, CASE WHEN spared IS NOT NULL THEN spared
                WHEN place <= total - allowed THEN 'surplus' WHEN aged THEN 'too old' ELSE 'within the limit' END
            FROM ({ranked}) AS r ORDER BY agent_id, version_number""",  # noqa: S608
            parameters,
        )
        yield from cursor.fetchall()


def _surplus(agent_ids: Sequence[str], limit: int) -> tuple[str, list[Any]]:
    """The ids of the versions over the limit, as SQL and its parameters."""
    if connection.vendor == "postgresql":
        one = len(agent_ids) == 1
        return LATERAL + ("%s" if one else "ANY(%s)"), [limit, agent_ids[0] if one else list(agent_ids)]
    ranked, parameters = _ranked(agent_ids, limit, "false", [])  # SQLite knows no LATERAL
    return f"SELECT id FROM ({ranked}) AS r WHERE spared IS NULL AND place <= total - allowed", parameters  # noqa: S608


def _deleted(chosen: str, parameters: Sequence[Any]) -> int:
    counts = list[int]()
    WriteBatch().execute(_deletion(chosen), parameters, counts.append).send()
    _tell(counts[0])
    return counts[0]


def _deletion(chosen: str) -> str:
    return f"DELETE FROM versions_app_agentversion WHERE id IN ({chosen}) RETURNING 1"  # noqa: S608


def _tell(count: int) -> None:
    if count:
        pruned.send(None, count=count)


def _ranked(agent_ids: Sequence[str], limit: int, aged: str, cutoffs: Sequence[Any]) -> tuple[str, list[Any]]:
    """The versions of these agents with why each is spared, and its place among those that are not."""
    agents, ids = _among(agent_ids)
    return RANKED.format(agents=agents, aged=f"({aged})"), [limit, *cutoffs, ids]


def _among(agent_ids: Sequence[str]) -> tuple[str, Any]:
    """The ids as a subquery and its parameter."""
    if connection.vendor == "postgresql":
        return "SELECT unnest(%s::text[])", list(agent_ids)
    return "SELECT value FROM json_each(%s)", json.dumps(list(agent_ids))


def _aged() -> tuple[str, list[Any]]:
    """The condition that a version is past its owner's age, and its parameters; none where nobody has an age."""
    rules = dict(RetentionRule.objects.filter(days__gt=0).values_list("owner_id", "days"))
    conditions = ["a.owner_id = %s AND v.created_at < %s"] * len(rules)
    parameters = [value for owner_id, days in rules.items() for value in (owner_id, _days_ago(days or 0))]
    if settings.AGENT_VERSION_DAYS:
        others = "a.owner_id NOT IN (SELECT r.owner_id FROM versions_app_retentionrule r WHERE r.days IS NOT NULL)"
        conditions.append(f"{others} AND v.created_at < %s")
        parameters.append(_days_ago(settings.AGENT_VERSION_DAYS))
    return " OR ".join(f"({each})" for each in conditions) or "false", parameters


def _days_ago(days: int) -> Any:
    # A rule may name more days than the calendar has.
    moment: datetime = timezone.now() - timedelta(days=min(days, settings.MAX_DAYS))
    return connection.ops.adapt_datetimefield_value(moment)
