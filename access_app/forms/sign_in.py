"""The form of the sign-in page."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.forms import AuthenticationForm

from access_app.forms.throttled import ThrottledFormMixin


class SignInForm(ThrottledFormMixin, AuthenticationForm):
    """A sign-in form with a throttle."""

    throttled_message = "Too many sign-in attempts. Wait %(wait)s and try again."

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
        with self.counted_attempt(self.request.META.get("REMOTE_ADDR", "") if self.request else "", username):
            return super().clean()
