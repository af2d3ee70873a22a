"""Forms of new API keys."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django import forms
from django.contrib.auth.models import User
from django.core.cache import cache
from django.utils import timezone

from access_app.forms.facts_field import FactsField
from access_app.models import ApiKey, validate_key_context, validate_key_resource
from access_app.role import Role
from agentcms.cache import CACHE_ERRORS
from agentcms.web.text_direction import PersonTextField

RESOURCE_HELP = (
    "The end user, document or room whose conversations the key reaches, and nothing else. Such a key may be given to "
    "the browser of an end user: it runs agents, but cannot read or change them."
)
CONTEXT_HELP = (
    "One per line, such as plan: pro. Conditions and variables of agents read them, and the caller cannot change them."
)
ALREADY_SENT_MESSAGE = (
    "This form was already sent, and its key was created. Its token cannot be shown again. To create another key, "
    "choose “Create key” once more."
)
SENT_FORM_SECONDS = 86_400  # for how long a form that was sent is recognized
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
    resource = PersonTextField(
        required=False, label="Only for the resource", help_text=RESOURCE_HELP, validators=[validate_key_resource]
    )
    context = FactsField(
        help_text=CONTEXT_HELP,
        validators=[validate_key_context],
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false", "placeholder": "plan: pro"}),
    )
    form_id = forms.UUIDField(required=False)
    used_id: UUID | None = None  # that of a valid form

    def clean_expires_at(self) -> object:
        days = self.cleaned_data["expires_at"]
        return timezone.now() + timedelta(days=int(days)) if days else None

    def clean(self) -> dict[str, Any]:
        """Refuse a form that was already sent, as by a reload of the page that shows the token."""
        # Without the identifier, which is no column: `issue_key` passes all values on.
        values = dict(self.cleaned_data)
        form_id = values.pop("form_id", None)
        # An invalid form creates no key, so its identifier may be sent again.
        if form_id and not self.errors:
            if not is_first_use(form_id):
                raise forms.ValidationError(ALREADY_SENT_MESSAGE, code="already_sent")
            self.used_id = form_id
        return values

    def issue_key(self, user: User, **columns: Any) -> str:
        """Create the key of a valid form and return its token. If that fails, the same form can be sent again."""
        try:
            _, token = ApiKey.objects.issue(user, **self.cleaned_data, **columns)
        except Exception:
            if self.used_id is not None:
                forget_use(self.used_id)
            raise
        return token

    def new_form_id(self) -> str:
        """Return an identifier for one sending of the form. An invalid form is sent again with another one."""
        return str(uuid4())


def is_first_use(form_id: UUID) -> bool:
    """Return whether no form with this identifier was sent before. Without the cache this is unknown, and assumed."""
    try:
        return cache.add(use_key(form_id), 1, SENT_FORM_SECONDS)
    except CACHE_ERRORS:
        return True


def forget_use(form_id: UUID) -> None:
    """Let a form with this identifier be sent again."""
    with suppress(*CACHE_ERRORS):
        cache.delete(use_key(form_id))


def use_key(form_id: UUID) -> str:
    return f"sent-key-form-{form_id.hex}"


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
