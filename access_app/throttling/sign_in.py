"""The throttle of sign-in attempts, counted in the cache or, without one, in the database.

The limit for a username from one address is low: it stops guessing without locking the user out elsewhere. The limit
for a username from all addresses is much higher: it stops many addresses that guess together.
"""

from __future__ import annotations

import hashlib
import logging
import time
from dataclasses import dataclass
from datetime import timedelta

from django.core.cache import cache
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from access_app.models import SignInAttempt
from access_app.throttling.networks import network_of
from agentcms.cache import CACHE_ERRORS

log = logging.getLogger(__name__)

ATTEMPT_WINDOW = 300  # seconds
# Attempts in a window.
MAX_PER_PAIR = 10  # for one username from one address
MAX_PER_ADDRESS = 50
MAX_PER_USERNAME = 500


@dataclass(frozen=True)
class SignInThrottle:
    """The throttle of attempts from one address for one username."""

    address: str
    username: str

    def hit(self) -> int:
        """Count an attempt. Return the seconds to wait if there were too many, else 0.

        An attempt above one limit does not count for the next ones. Otherwise one address could lock a user out.
        """
        limits = (
            (self.pair, MAX_PER_PAIR),
            (throttle_key("address", network_of(self.address)), MAX_PER_ADDRESS),
            (throttle_key("username", self.username), MAX_PER_USERNAME),
        )
        return next((wait for key, limit in limits if (wait := seconds_over_limit(key, limit))), 0)

    @property
    def pair(self) -> str:
        """The key of the username and address together."""
        return throttle_key("pair", f"{network_of(self.address)} {self.username}")

    def reset(self) -> None:
        """Delete the count of this address and username, after a correct password. The other counts stay."""
        try:
            cache.delete(self.pair)
        except CACHE_ERRORS:
            SignInAttempt.objects.filter(key=self.pair).delete()


def throttle_key(kind: str, value: str) -> str:
    """Return a key of fixed length: cache keys may not have spaces or be very long."""
    # A request may contain half of a surrogate pair, at which `encode` would raise.
    return f"sign-in:{kind}:{hashlib.sha256(value.casefold().encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def seconds_over_limit(key: str, limit: int) -> int:
    """Count an attempt. Return the seconds until the window ends if there were too many, else 0."""
    try:
        count, ends_at = count_in_cache(key)
    except CACHE_ERRORS:
        log.warning("The cache is unavailable: sign-in attempts are counted in the database.")
        count, ends_at = count_in_database(key)
    return max(1, int(ends_at - time.time()) + 1) if count > limit else 0


def count_in_cache(key: str) -> tuple[int, float]:
    """Count an attempt. Return the number of attempts in the window and the time of its end."""
    ends_at = time.time() + ATTEMPT_WINDOW
    if cache.add(key, 1, ATTEMPT_WINDOW):
        # Under a key of its own, because `incr` needs a plain number.
        cache.set(f"{key}:ends", ends_at, ATTEMPT_WINDOW)
        return 1, ends_at
    try:
        count = cache.incr(key)
    except ValueError:  # the window ended between the two calls
        return 1, ends_at
    if count == 1:  # it ended within `incr`: Redis has begun a count that would never end
        return start_count(key, ends_at)
    stored_end: float = cache.get(f"{key}:ends", ends_at)
    # The clock was set back since, which must not lock a user out until its old time.
    if stored_end > ends_at + ATTEMPT_WINDOW:
        return start_count(key, ends_at)
    return count, stored_end


def start_count(key: str, ends_at: float) -> tuple[int, float]:
    """Store a first attempt. Return the number of attempts in the window and the time of its end."""
    cache.set(key, 1, ATTEMPT_WINDOW)
    cache.set(f"{key}:ends", ends_at, ATTEMPT_WINDOW)
    return 1, ends_at


def count_in_database(key: str) -> tuple[int, float]:
    """Count an attempt. Return the number of attempts in the window and the time of its end."""
    now = timezone.now()
    with transaction.atomic():
        # Here, because no job cleans this table: it only has rows after the cache was unavailable.
        ends_at = now + timedelta(seconds=ATTEMPT_WINDOW)
        set_back = Q(ends_at__gt=ends_at + timedelta(seconds=ATTEMPT_WINDOW))  # the clock, since the window began
        SignInAttempt.objects.filter(Q(ends_at__lte=now) | set_back).delete()
        attempts, _ = SignInAttempt.objects.select_for_update().get_or_create(key=key, defaults={"ends_at": ends_at})
        attempts.count += 1
        attempts.save(update_fields=["count"])
    return attempts.count, attempts.ends_at.timestamp()
