"""The forms for a new password."""

from __future__ import annotations

from django.contrib.auth.forms import AdminPasswordChangeForm, PasswordChangeForm
from django.contrib.auth.models import User


class NewPasswordForm(PasswordChangeForm):
    """The form of Django, without the other columns of the user."""

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
