"""The form of the sign-in page."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import ValidationError

from access_app.throttling.sign_in import SignInThrottle


class SignInForm(AuthenticationForm):
    """A sign-in form that checks the throttle before it hashes the password, which is expensive."""

    wait = 0  # seconds until the next attempt, if throttled

    def focus_first_error(self) -> None:
        """Move the focus of the page to the first field with an error, or to the password."""
        first = next((name for name in self.fields if name in self.errors), "password")
        for name, field in self.fields.items():
            field.widget.attrs["autofocus"] = name == first

    def clean(self) -> dict[str, Any]:
        username = self.cleaned_data.get("username")
        # No password is hashed then, so that the throttle need not count it.
        if not username or not self.cleaned_data.get("password"):
            return super().clean()
        throttle = SignInThrottle(self.request.META.get("REMOTE_ADDR", "") if self.request else "", username)
        self.wait = throttle.hit()
        if self.wait:
            raise ValidationError(
                "Too many sign-in attempts. Wait %(wait)s and try again.",
                code="throttled",
                params={"wait": format_wait(self.wait)},
            )
        cleaned = super().clean()
        throttle.reset()
        return cleaned


def format_wait(seconds: int) -> str:
    """Return a number of seconds as text, rounded up: "40 seconds", "3 minutes"."""
    if seconds < 60:
        return f"{seconds} second{'' if seconds == 1 else 's'}"
    minutes = -(-seconds // 60)
    return f"{minutes} minute{'' if minutes == 1 else 's'}"
