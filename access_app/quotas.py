"""The limit of how many rows of a kind a team may have."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from access_app.role import SHARED_LABEL
from agentcms.db.locks import lock_name
from agentcms.errors import ApiError


def require_team_quota(rows: QuerySet[Any], owner_id: str, most: int, name: str, code: str) -> None:
    """Raise ApiError with status 429 if a team has as many rows as it may have.

    Call it in the transaction that stores another one: others of the team wait for its end. `rows` are those of all
    teams, `name` is what people call them, and `code` that of the error.
    """
    # The rows to come cannot be locked, and those of open transactions are not counted.
    lock_name(f"{name} of {owner_id}")
    if rows.filter(owner_id=owner_id).count() >= most:
        message = (
            f"{owner_id or SHARED_LABEL} has {most:,} {name}, as many as a team may have. Delete one that you no "
            "longer need, or ask the operator to raise the limit."
        )
        raise ApiError(429, message, code)
