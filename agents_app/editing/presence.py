"""Who has an agent open: a note in the cache that each open page renews."""

from __future__ import annotations

import time
from typing import Any

from django.core.cache import cache
from redis.exceptions import RedisError

BEAT = 20  # seconds between two notes of an open page
GONE = 50  # seconds after which one that sent none is taken as closed
CACHE_IS_AWAY = (RedisError, OSError)


def note(agent_key: str, user: Any) -> list[str]:
    """Say that the person has the agent open; returns the names of who else has. Without a cache, nobody is seen."""
    key, now = f"presence:{agent_key}", time.time()
    try:
        here: dict[int, tuple[str, float]] = cache.get(key) or {}
        here = {pk: each for pk, each in here.items() if now - each[1] < GONE}
        here[user.pk] = (user.get_full_name() or user.get_username(), now)
        cache.set(key, here, GONE)
    except CACHE_IS_AWAY:
        return []
    return sorted(name for pk, (name, _) in here.items() if pk != user.pk)
