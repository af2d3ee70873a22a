"""How often somebody may try to sign in: counted in the cache, else in the database.

Guessing one person's password from one place ends soon, without keeping that person out elsewhere. The bound on a
username from everywhere is far higher: it stops many places that guess together, and takes many places to reach.
"""

from __future__ import annotations

import hashlib
import ipaddress
import logging
import time
from dataclasses import dataclass
from datetime import timedelta

from django.core.cache import cache
from django.db import transaction
from django.utils import timezone

from access_app.models import SignInAttempt
from agentcms.cache import CACHE_ERRORS

log = logging.getLogger(__name__)

WINDOW = 300  # seconds
MAX_PER_PAIR = 10  # for one username from one address
MAX_PER_ADDRESS = 50
MAX_PER_USERNAME = 500


@dataclass(frozen=True)
class SignInThrottle:
    """The tries from one address for one username."""

    address: str
    username: str

    def hit(self) -> int:
        """Count a try; the seconds to wait where there were too many, else 0.

        A try that is refused by one bound does not count for the next: nobody locks a name for others by going on.
        """
        bounds = (
            (self.pair, MAX_PER_PAIR),
            (throttle_key("address", network(self.address)), MAX_PER_ADDRESS),
            (throttle_key("username", self.username), MAX_PER_USERNAME),
        )
        return next((wait for name, most in bounds if (wait := seconds_over_limit(name, most))), 0)

    @property
    def pair(self) -> str:
        return throttle_key("pair", f"{network(self.address)} {self.username}")

    def reset(self) -> None:
        """Forget the tries of this address for a username whose password was right; the other bounds still count."""
        name = self.pair
        try:
            cache.delete(name)
        except CACHE_ERRORS:
            SignInAttempt.objects.filter(key=name).delete()


def network(address: str) -> str:
    """An address as one place: of IPv6, a subscriber has a whole /64."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return address
    return str(found.ipv4_mapped or ipaddress.ip_network((found, 64), strict=False))


def throttle_key(kind: str, value: str) -> str:
    """A key of fixed length: a cache takes no spaces and not every length."""
    return f"sign-in:{kind}:{hashlib.sha256(value.casefold().encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def seconds_over_limit(name: str, most: int) -> int:
    try:
        count, ends = count_in_cache(name)
    except CACHE_ERRORS:
        log.warning("The cache is away: tries to sign in are counted in the database.")
        count, ends = count_in_database(name)
    return max(1, int(ends - time.time()) + 1) if count > most else 0


def count_in_cache(name: str) -> tuple[int, float]:
    """How many tries there were in this window, and when it ends."""
    ends = time.time() + WINDOW
    if cache.add(name, 1, WINDOW):
        cache.set(f"{name}:ends", ends, WINDOW)
        return 1, ends
    try:
        return cache.incr(name), cache.get(f"{name}:ends", ends)
    except ValueError:  # it ended in between
        return 1, ends


def count_in_database(name: str) -> tuple[int, float]:
    now = timezone.now()
    with transaction.atomic():
        SignInAttempt.objects.filter(ends_at__lte=now).delete()
        ends_at = now + timedelta(seconds=WINDOW)
        tries, _ = SignInAttempt.objects.select_for_update().get_or_create(key=name, defaults={"ends_at": ends_at})
        tries.count += 1
        tries.save(update_fields=["count"])
    return tries.count, tries.ends_at.timestamp()
