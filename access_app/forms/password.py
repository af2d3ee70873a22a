"""The form for a new password."""

from __future__ import annotations

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.forms import PasswordChangeForm


class NewPasswordForm(PasswordChangeForm):
    """The form of Django, without the other columns of the user."""

    def save(self, commit: bool = True) -> AbstractBaseUser:
        """Store the password alone: an administrator may have deactivated the user meanwhile."""
        self.user.set_password(self.cleaned_data["new_password1"])
        if commit:
            self.user.save(update_fields=["password"])
        return self.user
