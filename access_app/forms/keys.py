"""Forms of new API keys."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.utils import timezone

from access_app.forms.facts_field import FactsField
from access_app.models import validate_key_context, validate_key_resource
from access_app.role import Role

RESOURCE_HELP = (
    "The end user, document or room whose conversations the key reaches, and nothing else. Such a key may be given to "
    "the browser of an end user: it runs agents, but cannot read or change them."
)
CONTEXT_HELP = (
    "One per line, such as plan: pro. Conditions and variables of agents read them, and the caller cannot change them."
)
KEY_LIFETIMES = {"30": "30 days", "90": "90 days", "365": "One year", "": "Never"}


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

    def clean_expires_at(self) -> object:
        days = self.cleaned_data["expires_at"]
        return timezone.now() + timedelta(days=int(days)) if days else None


class TeamKeyForm(KeyForm):
    """A form for a new API key of a service that speaks for the end users of a team."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["name"].help_text = "For example “Support chat”."
        role: Any = self.fields["role"]
        # The service runs agents, which needs the editor role.
        role.choices = [choice for choice in Role.choices if Role(choice[0]).covers(Role.EDITOR)]
        role.initial = Role.EDITOR
        self.fields["resource"].help_text = f"{RESOURCE_HELP} Blank: the service names the end user in each request."
