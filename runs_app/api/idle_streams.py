"""Streams that stay open until the background tasks of their run have ended."""

from __future__ import annotations

from rest_framework.request import Request

from agentcms.api.parsers import json_object_body
from agents_app.configuration.schema import ConfigError, Issue
from runs_app.background.streams import MAX_IDLE_MS

LONGEST_IDLE_MS = 60 * 60 * 1000


def requested_idle_time(request: Request, *, is_route: bool) -> int | None:
    """Return the milliseconds after which an idle stream ends, or None for a stream that ends with its run."""
    body = json_object_body(request)
    choice = body.get("untilIdle", is_route)
    limit = choice.get("maxIdleMs") if isinstance(choice, dict) else body.get("maxIdleMs")
    if choice is False or not (is_route or choice):
        return None
    if limit is None:
        return MAX_IDLE_MS
    if isinstance(limit, bool) or not isinstance(limit, int) or not 0 < limit <= LONGEST_IDLE_MS:
        message = f"This must be a whole number of milliseconds, from 1 to {LONGEST_IDLE_MS}."
        raise ConfigError([Issue("maxIdleMs", message)])
    return limit
