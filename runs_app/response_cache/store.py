"""Storage of cached answers in Django's cache, encrypted, and the lock under which one of equal requests asks.

While the cache is unavailable, nothing is found and nothing is stored.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from enum import Enum

from django.core.cache import cache
from django.dispatch import Signal

from agentcms.cache import CACHE_ERRORS
from agentcms.db.encryption import decrypt, encrypt

answer_looked_up = Signal()  # sent with `result`, "hit", "miss" or "bust"

log = logging.getLogger(__name__)

MAX_BYTES = 256 * 1024  # of an answer
LOCK_SECONDS = 15  # after which a process that has stopped no longer blocks others
NOT_STORED_SECONDS = 10  # for which equal requests do not wait for an answer that is not stored

CACHED_ANSWERS = "cached answers"  # the purpose of the encryption


class NextAct(Enum):
    """The next act of a request whose answer is not stored."""

    FIRST = "first"  # ask the model, while equal requests wait
    UNCACHED = "uncached"  # the same without the cache: only equal requests of this process wait
    OWN = "own"  # ask the model beside others: the last answer could not be stored
    WAIT = "wait"


def read_cached_answer(key: str) -> str | None:
    """Return the JSON text of a cached answer, or None."""
    try:
        token = cache.get(f"response-cache:{key}")
    except CACHE_ERRORS as error:
        log.warning("The response cache is unavailable: %s", error)
        return None
    return decrypt(token, CACHED_ANSWERS) if isinstance(token, str) else None


def store_answer(key: str, text: str, seconds: int) -> bool:
    """Store the JSON text of an answer for some seconds, if there is a cache. Return False if it is too large."""
    if len(text.encode()) > MAX_BYTES:
        return False
    try:
        cache.set(f"response-cache:{key}", encrypt(text, CACHED_ANSWERS), seconds)
    except CACHE_ERRORS as error:
        log.warning("The response cache is unavailable: %s", error)
    return True


def delete_answers(keys: Sequence[str]) -> None:
    """Delete the answers of a run that waits for people: a repeated answer would ask them again."""
    with suppress(*CACHE_ERRORS):
        cache.delete_many([f"response-cache:{key}" for key in keys])


def take_turn(key: str) -> NextAct:
    """Return whether a request shall ask the model, or wait for the answer to an equal one."""
    try:
        if cache.get(f"response-cache-skip:{key}") is not None:
            return NextAct.OWN
        return NextAct.FIRST if cache.add(f"response-cache-lock:{key}", 1, LOCK_SECONDS) else NextAct.WAIT
    except CACHE_ERRORS:
        return NextAct.UNCACHED


def renew_lock(key: str) -> bool:
    """Keep the lock of a request that still asks the model. Return False if it no longer exists."""
    with suppress(*CACHE_ERRORS):
        return cache.touch(f"response-cache-lock:{key}", LOCK_SECONDS)
    return False


def release_lock(key: str, *, is_stored: bool) -> None:
    """Let the requests that wait for the answer read it, or ask themselves if it was not stored."""
    with suppress(*CACHE_ERRORS):
        if not is_stored:
            # Before the lock is free. Otherwise the next request takes it, and the others wait for that one as well.
            cache.set(f"response-cache-skip:{key}", 1, NOT_STORED_SECONDS)
        cache.delete(f"response-cache-lock:{key}")
