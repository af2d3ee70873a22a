"""The cursors of the list of agents: a place in one order, as a text for URLs."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import datetime
from typing import Any

from agentcms.api.query_params import OrderBy, QueryParams
from agentcms.wire.timestamps import parse_timestamp


def write_cursor(order: OrderBy, row: tuple[Any, ...]) -> str:
    """Return the cursor after a row, which ends with the value of the order column."""
    value = row[-1].isoformat() if isinstance(row[-1], datetime) else row[-1]
    text = json.dumps([order.field, order.direction, value, row[0]])
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(query: QueryParams, cursor: str, order: OrderBy) -> list[Any] | None:
    """Return the value and the id of a cursor. Add a fault to the query if it is not a cursor of this order."""
    try:
        field, direction, value, agent_id = json.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        if (field, direction) != (order.field, order.direction) or not isinstance(agent_id, str):
            raise ValueError
        # PostgreSQL accepts neither a NUL nor half of a surrogate pair, at which `encode` raises.
        if "\0" in agent_id + value:
            raise ValueError
        (agent_id + value).encode()
        return [value if field == "name" else parse_timestamp(value), agent_id]
    except (ValueError, TypeError, RecursionError):
        query.add_fault("cursor", "Give a cursor of this list in this order, as nextCursor gave it.")
        return None
