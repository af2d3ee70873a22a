"""API keys in the admin."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.admin.widgets import AdminTextInputWidget
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import ForeignKey, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from access_app.admin_base.concurrent_changes import LockedChangeMixin
from access_app.admin_base.confirmation import confirmation_page
from access_app.admin_base.staff_access import StaffAccessMixin
from access_app.end_user_keys import find_role_faults
from access_app.forms.facts_field import FactsField
from access_app.forms.keys import CONTEXT_HELP, RESOURCE_HELP
from access_app.models import ApiKey, validate_key_context, validate_key_resource
from access_app.role import SHARED_LABEL, Role
from access_app.teams import can_be_offered, team_choices
from agentcms.plural import pluralize

User = get_user_model()

MANY_TEAMS_HELP = "Enter team: and the ID of the team, such as team:support. Blank: the conversations of its user."
KEY_FIELDS = ("user", "name", "role", "expires_at")
SCOPE_FIELDS = ("realm_owner", "resource", "context")  # of an API key
# Not the columns `role` and `realm_owner`: a blank one is a value, and the page would show a dash as for none.
DISPLAYED_FIELDS = ("max_role", "expires_at", "serves", "resource", "context")


class ApiKeyForm(forms.ModelForm):
    """The form of a new API key: also whose conversations it reaches, and facts about its caller."""

    acting: Any = None  # the signed-in user
    realm_owner = forms.ChoiceField(
        required=False,
        label="Serves end users of",
        help_text="The team whose end users the key serves, apart from the conversations of its user.",
    )
    resource = forms.CharField(
        required=False, label="Only for resource", help_text=RESOURCE_HELP, validators=[validate_key_resource]
    )
    context = FactsField(
        help_text=CONTEXT_HELP,
        validators=[validate_key_context],
        widget=forms.Textarea(attrs={"rows": 3, "class": "vLargeTextField"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "realm_owner" in self.fields:
            # The prefix tells Shared, whose ID is blank, from the choice of no team.
            teams = [(f"team:{owner}", label) for owner, label in team_choices(self.acting, Role.MANAGER)]
            realm_owner: Any = self.fields["realm_owner"]
            realm_owner.choices = [("", "nobody: the conversations of its user"), *teams]
            if not can_be_offered(teams):
                realm_owner.widget = AdminTextInputWidget()
                realm_owner.help_text = f"{realm_owner.help_text} {MANY_TEAMS_HELP}"

    def clean_realm_owner(self) -> str | None:
        choice: str = self.cleaned_data["realm_owner"]
        return choice.removeprefix("team:") if choice else None

    def clean_expires_at(self) -> datetime | None:
        expires_at: datetime | None = self.cleaned_data["expires_at"]
        if expires_at is not None and expires_at <= timezone.now():
            raise ValidationError("Choose a time in the future (UTC): the key would not work.", code="invalid")
        return expires_at

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        owner, user = cleaned.get("realm_owner"), cleaned.get("user")
        if user is not None and not user.is_active:
            self.add_error("user", f"{user} is deactivated, so the key would not work. Choose another user.")
        if owner is not None:
            for name, message in find_role_faults(user, cleaned.get("role", ""), owner):
                self.add_error(name, message)
        return cleaned


@admin.register(ApiKey)
class ApiKeyAdmin(LockedChangeMixin, StaffAccessMixin, admin.ModelAdmin):
    """The page of API keys. A token is shown once, after the key is created."""

    list_display = (
        "name",
        "prefix",
        "user",
        "max_role",
        "serves",
        "expires_at",
        "last_used_at",
        "valid",
    )
    list_filter = ("role",)
    search_fields = ("name", "prefix", "user__username")
    readonly_fields = ("prefix", "created_at", "last_used_at", "revoked_at")
    actions = ("revoke",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiKey]:
        keys = super().get_queryset(request).select_related("user")
        return keys if request.user.is_superuser else keys.filter(user=request.user.pk)

    def get_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> Any:
        if obj is None:
            return (*KEY_FIELDS, *SCOPE_FIELDS)
        return ("user", "name", *DISPLAYED_FIELDS, *self.readonly_fields)

    def get_readonly_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> Any:
        return self.readonly_fields if obj is None else ("user", *DISPLAYED_FIELDS, *self.readonly_fields)

    def get_form(self, request: HttpRequest, obj: ApiKey | None = None, change: bool = False, **kwargs: Any) -> Any:
        """Return the form of a new key, or that of an existing one, of which only the name can be changed."""
        if obj is None:
            # A class for each request, because Django gives a form of the admin no request. The scope is not in
            # `fields`, where Django refuses columns that are not editable: the form declares it itself.
            kwargs |= {"form": type("ApiKeyForm", (ApiKeyForm,), {"acting": request.user}), "fields": KEY_FIELDS}
        return super().get_form(request, obj, change, **kwargs)

    formfield_overrides: ClassVar = {
        models.DateTimeField: {
            "form_class": forms.DateTimeField,  # the default has two inputs, for date and time, with one label
            "widget": forms.DateTimeInput({"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        },
    }

    def formfield_for_foreignkey(self, db_field: ForeignKey, request: HttpRequest, **kwargs: Any) -> Any:
        if not request.user.is_superuser:
            # A key acts as its user, so staff may create keys for themselves only.
            kwargs["queryset"] = User.objects.filter(username=request.user.get_username())
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.has_module_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: ApiKey | None = None) -> bool:
        return self.has_module_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: ApiKey | None = None) -> bool:
        return False  # keys are revoked, not deleted, so that their use can be traced

    def save_model(self, request: HttpRequest, obj: ApiKey, form: ApiKeyForm, change: bool) -> None:
        if change:
            super().save_model(request, obj, form, change)
            return
        scope = {name: form.cleaned_data[name] for name in SCOPE_FIELDS}
        key, token = ApiKey.objects.issue(obj.user, name=obj.name, role=obj.role, expires_at=obj.expires_at, **scope)
        # `issue` created another object. Django names this one in its log and its message.
        obj.pk = key.pk
        obj.prefix = key.prefix
        messages.warning(request, f"Copy the key now. It is not shown again: {token}")

    @admin.action(description="Revoke selected keys …")
    def revoke(self, request: HttpRequest, keys: QuerySet[ApiKey]) -> HttpResponse | None:
        """Revoke keys, after a question that says when each was last used."""
        valid = [key for key in keys if key.revoked_at is None]
        if not valid:
            self.message_user(request, "The selected keys are revoked already.", messages.WARNING)
            return None
        count = pluralize(len(valid), "key")
        if "confirmed" not in request.POST:
            context = {"keys": valid, "verb": "Revoke", "button": f"Revoke {count}"}
            return confirmation_page(self, request, "access_app/revoke_keys", f"Revoke {count}?", **context)
        for key in valid:
            key.revoke()
        LogEntry.objects.log_actions(request.user.pk or 0, valid, CHANGE, "Revoked.")
        self.message_user(request, f"{count} revoked.")
        return None

    @admin.display(description="Max role")
    def max_role(self, key: ApiKey) -> str:
        return key.get_role_display() if key.role else "same as user"

    @admin.display(description="Serves", ordering="realm_owner")
    def serves(self, key: ApiKey) -> str:
        """Return whose conversations the key reaches: of its user, or of the end users of a team."""
        team = "the user" if key.realm_owner is None else key.realm_owner or SHARED_LABEL
        return f"{team}, only {key.resource}" if key.resource else team

    @admin.display(boolean=True)
    def valid(self, key: ApiKey) -> bool:
        return key.is_valid
