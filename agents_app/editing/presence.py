"""The people who have an agent open. Each open page renews an entry in the cache."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from django.core.cache import cache

from agentcms.cache import CACHE_ERRORS

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User

RENEWAL_INTERVAL = 20  # seconds between two renewals by an open page
PRESENCE_TIMEOUT = 50  # seconds after which a page that sent none counts as closed


def renew_presence(agent_key: str, user: User | AnonymousUser) -> list[str]:
    """Record that a user has an agent open. Return the names of the others, or none if the cache is unavailable."""
    if not user.is_authenticated:
        return []
    key, now = f"presence:{agent_key}", time.time()
    try:
        entries: dict[int, tuple[str, float]] = cache.get(key) or {}
        entries = {pk: entry for pk, entry in entries.items() if now - entry[1] < PRESENCE_TIMEOUT}
        entries[user.pk] = (user.get_full_name() or user.get_username(), now)
        # Without a lock: two pages may overwrite the entries of each other, which their next renewal adds again.
        cache.set(key, entries, PRESENCE_TIMEOUT)
    except CACHE_ERRORS:
        return []
    return sorted(name for pk, (name, _) in entries.items() if pk != user.pk)
