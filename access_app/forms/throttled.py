"""A form that checks the password of a user, with a throttle."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.exceptions import ValidationError

from access_app.throttling.sign_in import SignInThrottle
from agentcms.plural import pluralize


class ThrottledFormMixin:
    """A mixin that counts attempts before the password is hashed, which is expensive."""

    wait = 0  # seconds until the next attempt, if throttled
    throttled_message = "Too many attempts. Wait %(wait)s and try again."

    @contextmanager
    def counted_attempt(self, address: str, username: str) -> Iterator[None]:
        """Count the attempt of the block, unless it succeeds. Raise ValidationError after too many."""
        throttle = SignInThrottle(address, username)
        self.wait = throttle.hit()
        if self.wait:
            raise ValidationError(self.throttled_message, code="throttled", params={"wait": format_wait(self.wait)})
        yield
        throttle.reset()


def format_wait(seconds: int) -> str:
    """Return a number of seconds as text, rounded up: "40 seconds", "3 minutes"."""
    if seconds < 60:
        return pluralize(seconds, "second")
    return pluralize(-(-seconds // 60), "minute")
