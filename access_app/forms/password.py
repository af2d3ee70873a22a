"""The forms for a new password."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.forms import AdminPasswordChangeForm, PasswordChangeForm
from django.contrib.auth.models import User

from access_app.forms.throttled import ThrottledFormMixin


class NewPasswordForm(ThrottledFormMixin, PasswordChangeForm):
    """The form of Django without the other columns of the user, and with the throttle of the sign-in page.

    Otherwise a stolen session could be used to guess the password.
    """

    def __init__(self, *args: Any, address: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.address = address  # of the request

    def clean_old_password(self) -> str:
        with self.counted_attempt(self.address, self.user.get_username()):
            return str(super().clean_old_password())

    def save(self, commit: bool = True) -> User:
        """Store the password alone: an administrator may have deactivated the user meanwhile."""
        self.user.set_password(self.cleaned_data["new_password1"])
        if commit:
            self.user.save(update_fields=["password"])
        return self.user


class AccountPasswordForm(AdminPasswordChangeForm):  # type: ignore[type-arg]
    """The form of Django for the password of another user, without the other columns of the user."""

    def save(self, commit: bool = True) -> User:
        """Store the password alone, as `NewPasswordForm` does."""
        user: User = super().save(commit=False)
        if commit:
            user.save(update_fields=["password"])
        return user
