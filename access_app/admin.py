"""The admin of users, memberships and API keys.

Superusers may do everything. Other staff manage the members of their teams and their own API keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.auth import get_user_model
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.forms import UserChangeForm
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import models, transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from access_app.admin_access import StaffAccessMixin, confirmation_page
from access_app.caller import Caller
from access_app.forms import CONTEXT_HELP, RESOURCE_HELP, UNKNOWN_USERNAME_MESSAGE
from access_app.models import ApiKey, Membership, validate_key_context, validate_key_resource
from access_app.permissions import has_role, has_role_everywhere, owner_ids_for
from access_app.role import SHARED_LABEL, Role
from access_app.teams import reject_loss_of_managers, team_choices

User = get_user_model()
KEY_FIELDS = ("user", "name", "role", "expires_at")
SCOPE_FIELDS = ("realm_owner", "resource", "context")  # of an API key


def managed_memberships(user: Caller) -> QuerySet[Membership]:
    """Return the memberships that the user manages."""
    if has_role_everywhere(user, Role.MANAGER):
        return Membership.objects.all()
    return Membership.objects.filter(owner_id__in=owner_ids_for(user, Role.MANAGER))


class MembershipForm(forms.ModelForm):
    """A form that accepts only owners that the user manages."""

    user: Any = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if field := self.fields.get("owner_id"):
            current = [] if self.instance._state.adding else [self.instance.owner_id]
            field.widget = forms.Select(choices=team_choices(self.user, Role.MANAGER, *current))
            field.help_text = "A new team is created on the page Team, with its first member."

    def clean_owner_id(self) -> str:
        owner_id: str = self.cleaned_data["owner_id"]
        if not has_role(self.user, Role.MANAGER, owner_id):
            self.add_error("owner_id", "You can only add members to teams that you manage.")
        return owner_id

    def clean(self) -> dict[str, Any]:
        """Reject a change that takes the last manager from a team."""
        cleaned = super().clean() or {}
        before = Membership.objects.filter(pk=self.instance.pk).first()
        stays = before and (cleaned.get("owner_id"), cleaned.get("role")) == (before.owner_id, Role.MANAGER)
        if before and not stays:
            reject_loss_of_managers([before])
        return cleaned


class MembershipFormSet(forms.BaseInlineFormSet):
    """The memberships of a user, of which the last manager of a team cannot be deleted."""

    def clean(self) -> None:
        super().clean()
        reject_loss_of_managers(form.instance for form in self.deleted_forms)


class AccountForm(UserChangeForm):
    """The form of a user, who cannot be deactivated as the last manager of a team."""

    def clean_is_active(self) -> bool:
        is_active: bool = self.cleaned_data["is_active"]
        if not is_active:
            reject_loss_of_managers(self.instance.memberships.all())
        return is_active


class TeamManagersMixin:
    """A mixin that deletes no last manager of a team, neither on the page of a row nor on the list."""

    @staticmethod
    def memberships_of(objs: Iterable[Any]) -> Iterable[Membership]:
        """Return the memberships that are deleted with rows."""
        raise NotImplementedError

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Return the last managers as protected objects, so that nothing is deleted."""
        rows = list(objs)
        deleted, counts, lacking, protected = super().get_deleted_objects(objs, request)  # type: ignore[misc]
        try:
            reject_loss_of_managers(self.memberships_of(rows))
        except ValidationError as error:
            protected = [*protected, *error.messages]
        return deleted, counts, lacking, protected

    @transaction.atomic
    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Display the list or run an action, in one transaction with its checks."""
        response: HttpResponse = super().changelist_view(request, extra_context)  # type: ignore[misc]
        return response


class MembershipAccessMixin(StaffAccessMixin):
    """A mixin that lets managers of an owner change its memberships."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Membership]:
        return managed_memberships(request.user).select_related("user")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return (
            self.has_module_permission(request) and managed_memberships(request.user).exists()
        ) or request.user.is_superuser

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        if isinstance(obj, Membership):
            return has_role(request.user, Role.MANAGER, obj.owner_id)
        return self.has_module_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_change_permission(request, obj)


def membership_form_for(user: Caller) -> type[MembershipForm]:
    """Return a form class that has the user."""
    return type("MembershipForm", (MembershipForm,), {"user": user})


@admin.register(Membership)
class MembershipAdmin(MembershipAccessMixin, TeamManagersMixin, admin.ModelAdmin):
    """The page of memberships."""

    @staticmethod
    def memberships_of(objs: Iterable[Any]) -> Iterable[Membership]:
        return objs

    list_display = ("user", "owner", "role")
    list_filter = ("role",)
    search_fields = ("user__username", "owner_id")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return () if obj is None else ("user",)

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Return a field for the username: the select with search has no name for screen readers."""
        return forms.ModelChoiceField(
            User.objects.all(),
            to_field_name="username",
            label="Username",
            widget=forms.TextInput({"class": "vTextField"}),
            error_messages={"invalid_choice": UNKNOWN_USERNAME_MESSAGE},
        )

    @admin.display(description="Team", ordering="owner_id")
    def owner(self, membership: Membership) -> str:
        return membership.owner_id or SHARED_LABEL

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        return super().get_form(request, obj, change, **{**kwargs, "form": membership_form_for(request.user)})


class MembershipInline(MembershipAccessMixin, admin.StackedInline):
    """The memberships on the page of a user."""

    model = Membership
    formset = MembershipFormSet
    extra = 0
    fields = (("owner_id", "role"),)

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        return super().get_formset(request, obj, **{**kwargs, "form": membership_form_for(request.user)})


admin.site.unregister(User)
admin.site.unregister(Group)  # roles decide; Django's groups and permissions are not used


@admin.register(User)
class UserAccountAdmin(StaffAccessMixin, TeamManagersMixin, UserAdmin):
    """The page of users. Superusers change users; other staff only the memberships that they manage."""

    form = AccountForm
    inlines: ClassVar = [MembershipInline]
    list_display = ("username", "email", "is_active", "is_staff", "is_superuser", "last_login")
    readonly_fields = ("last_login", "date_joined")
    list_filter = ("is_active", "is_staff", "is_superuser")
    filter_horizontal = ()
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Personal information", {"fields": ("first_name", "last_name", "email")}),
        ("Access", {"fields": ("is_active", "is_staff", "is_superuser")}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )

    @staticmethod
    def memberships_of(objs: Iterable[Any]) -> Iterable[Membership]:
        return Membership.objects.filter(user__in=objs)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_module_permission(request)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if request.user.is_superuser:
            return super().get_readonly_fields(request, obj)
        return ("username", "first_name", "last_name", "email", "is_active", "last_login")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        if request.user.is_superuser:
            return super().get_fieldsets(request, obj)
        return ((None, {"fields": self.get_readonly_fields(request, obj)}),)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.is_superuser

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.is_superuser

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:
        """Let superusers set a password. Other users change their own on the account page."""
        if not request.user.is_superuser:
            raise PermissionDenied
        response: HttpResponse = super().user_change_password(request, id, form_url)
        return response


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
    context = forms.JSONField(
        required=False,
        label="Facts about the caller (JSON)",
        help_text=CONTEXT_HELP,
        validators=[validate_key_context],
        widget=forms.Textarea(attrs={"rows": 3, "class": "vLargeTextField"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "realm_owner" in self.fields:
            teams = [(f"team:{owner}", label) for owner, label in team_choices(self.acting, Role.MANAGER)]
            realm_owner: Any = self.fields["realm_owner"]
            realm_owner.choices = [("", "nobody: the conversations of its user"), *teams]

    def clean_realm_owner(self) -> str | None:
        choice: str = self.cleaned_data["realm_owner"]
        return choice.removeprefix("team:") if choice else None

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        owner, user = cleaned.get("realm_owner"), cleaned.get("user")
        if owner is not None and user is not None and not has_role(user, Role.EDITOR, owner):
            self.add_error("user", f"{user} is no editor of {owner or SHARED_LABEL}. Make the user a member first.")
        if owner is not None and cleaned.get("role") == Role.VIEWER:
            self.add_error("role", "A key for end users must be able to edit. Choose a higher role or none.")
        return cleaned


@admin.register(ApiKey)
class ApiKeyAdmin(StaffAccessMixin, admin.ModelAdmin):
    """The page of API keys. A token is shown once, after the key is created."""

    list_display = (
        "name",
        "prefix",
        "user",
        "max_role",
        "realm_owner",
        "resource",
        "created_at",
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

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = (*KEY_FIELDS, *SCOPE_FIELDS)
        return fields if obj is None else (*fields, *self.readonly_fields)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return (
            self.readonly_fields
            if obj is None
            else ("user", "role", "expires_at", *SCOPE_FIELDS, *self.readonly_fields)
        )

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """Return the form of a new key, or that of an existing one, of which only the name can be changed."""
        if obj is None:
            kwargs |= {"form": type("ApiKeyForm", (ApiKeyForm,), {"acting": request.user}), "fields": KEY_FIELDS}
        return super().get_form(request, obj, change, **kwargs)

    formfield_overrides: ClassVar = {
        models.DateTimeField: {
            "form_class": forms.DateTimeField,  # the default has two inputs, for date and time, with one label
            "widget": forms.DateTimeInput({"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        },
    }

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if not request.user.is_superuser:
            kwargs["queryset"] = User.objects.filter(username=request.user.get_username())
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.has_module_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_module_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False  # keys are revoked, not deleted, so that their use can be traced

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:
        if change:
            super().save_model(request, obj, form, change)
            return
        scope = {name: form.cleaned_data[name] for name in SCOPE_FIELDS}
        key, token = ApiKey.objects.issue(obj.user, name=obj.name, role=obj.role, expires_at=obj.expires_at, **scope)
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
        count = "1 key" if len(valid) == 1 else f"{len(valid)} keys"
        if "confirmed" not in request.POST:
            context = {"keys": valid, "verb": "Revoke", "button": f"Revoke {count}"}
            return confirmation_page(self, request, "access_app/revoke_keys", f"Revoke {count}?", **context)
        for key in valid:
            key.revoke()
        self.message_user(request, f"{count} revoked.")
        return None

    @admin.display(description="Max role")
    def max_role(self, key: ApiKey) -> str:
        return key.get_role_display() if key.role else "same as user"

    @admin.display(boolean=True)
    def valid(self, key: ApiKey) -> bool:
        return key.is_valid
