"""Forms of accounts and teams: sign-in, API keys, members."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar

from django import forms
from django.contrib.auth import get_user_model
from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import ValidationError
from django.utils import timezone

from access_app.fact_fields import FactsField
from access_app.models import Membership, validate_key_context, validate_key_resource
from access_app.role import Role
from access_app.throttling.sign_in import SignInThrottle

UNKNOWN_USERNAME_MESSAGE = "There is no user with this username."
RESOURCE_HELP = (
    "The end user, document or room whose conversations the key reaches, and nothing else. Such a key may be given to "
    "the browser of an end user: it runs agents, but cannot read or change them."
)
CONTEXT_HELP = (
    "One per line, such as plan: pro. Conditions and variables of agents read them, and the caller cannot change them."
)
KEY_LIFETIMES = {"30": "30 days", "90": "90 days", "365": "One year", "": "Never"}


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


class KeyForm(forms.Form):
    """A form for a new API key."""

    name = forms.CharField(
        max_length=100,
        label="Name",
        widget=forms.TextInput(attrs={"dir": "auto"}),
        help_text="For example “Nightly export”.",
    )
    role = forms.ChoiceField(
        required=False,
        choices=[("", "Same as my role"), *Role.choices],
        label="Role",
        help_text="The key never has more permissions than you.",
    )
    expires_at = forms.ChoiceField(required=False, choices=list(KEY_LIFETIMES.items()), initial="90", label="Expires")
    resource = forms.CharField(
        required=False, label="Only for the resource", help_text=RESOURCE_HELP, validators=[validate_key_resource]
    )
    context = FactsField(
        help_text=CONTEXT_HELP,
        validators=[validate_key_context],
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false", "placeholder": "plan: pro"}),
    )

    def clean_expires_at(self) -> Any:
        days = self.cleaned_data["expires_at"]
        return timezone.now() + timedelta(days=int(days)) if days else None


class TeamKeyForm(KeyForm):
    """A form for a new API key of a service that speaks for the end users of a team."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["name"].help_text = "For example “Support chat”."
        role: Any = self.fields["role"]
        role.choices = [choice for choice in Role.choices if Role(choice[0]).covers(Role.EDITOR)]
        role.initial = Role.EDITOR
        self.fields["resource"].help_text = f"{RESOURCE_HELP} Blank: the service names the end user in each request."


class MemberForm(forms.ModelForm):
    """A form for a new member of a team, by username."""

    username = forms.CharField(max_length=150, label="Username")
    role = forms.ChoiceField(choices=Role.choices, initial=Role.EDITOR)

    class Meta:
        model = Membership
        fields: ClassVar = ["role"]

    def __init__(self, *args: Any, owner_id: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.instance.owner_id = owner_id

    def clean_username(self) -> str:
        username: str = self.cleaned_data["username"]
        user = get_user_model().objects.filter(username=username, is_active=True).first()
        if user is None:
            raise ValidationError(UNKNOWN_USERNAME_MESSAGE)
        if Membership.objects.filter(user=user, owner_id=self.instance.owner_id).exists():
            raise ValidationError("This user is already a member. Change the role in the list.")
        self.instance.user = user
        return username


class RoleForm(forms.ModelForm):
    """A form for the role of a member."""

    class Meta:
        model = Membership
        fields: ClassVar = ["role"]
