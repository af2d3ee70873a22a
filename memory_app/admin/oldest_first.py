"""The limit of actions on whole conversations, which take the oldest first."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db.models import Min, QuerySet
from django.http import HttpRequest

MAX_CONVERSATIONS = 1000  # of one action


def oldest_conversations(request: HttpRequest, rows: QuerySet[Any], *names: str) -> list[tuple[Any, ...]]:
    """Return the distinct values of rows, at most MAX_CONVERSATIONS. A message says how many are left.

    The oldest rows come first. What an action makes again is new, so that the same action goes on with those left.
    """
    # Without the order of the list: by ID, each row would be distinct.
    distinct = rows.order_by().values_list(*names).annotate(oldest=Min("pk")).order_by("oldest")
    chosen = [values[:-1] for values in distinct[: MAX_CONVERSATIONS + 1]]
    if len(chosen) > MAX_CONVERSATIONS:
        left = distinct.count() - MAX_CONVERSATIONS
        text = f"One action takes {MAX_CONVERSATIONS:,} conversations. Repeat it for the other {left:,}."
        messages.warning(request, text)
    return chosen[:MAX_CONVERSATIONS]
