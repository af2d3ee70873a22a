"""The forms for a new password."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.forms import AdminPasswordChangeForm, AdminUserCreationForm, PasswordChangeForm
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.utils.html import format_html

from access_app.forms.throttled import ThrottledFormMixin
from access_app.members import reject_loss_of_superusers

# Django's text names single sign-on and LDAP, which this application does not have.
SIGN_IN_HELP = "If disabled, nobody can sign in as this user. API keys of the user still work."
LOST_PASSWORD_WARNING = format_html(
    '{}<ul id="id_unusable_warning" class="messagelist"><li class="warning">{}</li></ul>',
    SIGN_IN_HELP,
    "If disabled, the current password for this user will be lost.",
)


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

    usable_password_help_text = LOST_PASSWORD_WARNING

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if not self.cleaned_data["set_usable_password"]:
            try:
                reject_loss_of_superusers([self.user])
            except ValidationError as error:  # of a field: the page shows no others
                self.add_error("usable_password", error)
        return cleaned

    def save(self, commit: bool = True) -> User:
        """Store the password alone, as `NewPasswordForm` does."""
        user: User = super().save(commit=False)
        if commit:
            user.save(update_fields=["password"])
        return user


class NewAccountForm(AdminUserCreationForm):  # type: ignore[type-arg]
    """The form of Django for a new user."""

    usable_password = AdminUserCreationForm.create_usable_password_field(SIGN_IN_HELP)
