"""The form for a new password."""

from __future__ import annotations

from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.models import User


class NewPasswordForm(PasswordChangeForm):
    """The form of Django, without the other columns of the user."""

    def save(self, commit: bool = True) -> User:
        """Store the password alone: an administrator may have deactivated the user meanwhile."""
        self.user.set_password(self.cleaned_data["new_password1"])
        if commit:
            self.user.save(update_fields=["password"])
        return self.user
