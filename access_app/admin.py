"""Users, memberships and API keys for staff.

Superusers may all. Other staff keep the members of the owners they manage, and their own keys.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.auth import get_user_model
from django.contrib.auth.admin import UserAdmin
from django.core.exceptions import PermissionDenied
from django.db import models
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from access_app.admin_access import StaffAccessMixin
from access_app.models import ApiKey, Membership
from access_app.permissions import has_role, has_role_everywhere, owner_ids_for
from access_app.role import Role

User = get_user_model()


def managed_memberships(user: Any) -> QuerySet[Membership]:
    """The memberships that a member of staff keeps."""
    if has_role_everywhere(user, Role.MANAGER):
        return Membership.objects.all()
    return Membership.objects.filter(owner_id__in=owner_ids_for(user, Role.MANAGER))


class MembershipForm(forms.ModelForm):
    """A membership of an owner that the member of staff manages."""

    user: Any = None

    def clean_owner_id(self) -> str:
        owner_id: str = self.cleaned_data["owner_id"]
        if not has_role(self.user, Role.MANAGER, owner_id):
            self.add_error("owner_id", "You may only grant roles for owners that you manage.")
        return owner_id


class MembershipAccessMixin(StaffAccessMixin):
    """Grants and takes away roles, for managers of the owner alone."""

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


def membership_form_for(user: Any) -> type[MembershipForm]:
    """The form knows who grants."""
    return type("MembershipForm", (MembershipForm,), {"user": user})


@admin.register(Membership)
class MembershipAdmin(MembershipAccessMixin, admin.ModelAdmin):
    list_display = ("user", "owner", "role")
    list_filter = ("role",)
    search_fields = ("user__username", "owner_id")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return () if obj is None else ("user",)

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """By username, as on the team's page: Django's searching select has no name for a screen reader."""
        return forms.ModelChoiceField(
            User.objects.all(),
            to_field_name="username",
            label="Username",
            widget=forms.TextInput({"class": "vTextField"}),
            error_messages={"invalid_choice": "Nobody has this username."},
        )

    @admin.display(ordering="owner_id")
    def owner(self, membership: Membership) -> str:
        return membership.owner_id or "shared space"

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        return super().get_form(request, obj, change, **{**kwargs, "form": membership_form_for(request.user)})


class MembershipInline(MembershipAccessMixin, admin.StackedInline):
    model = Membership
    extra = 0
    fields = (("owner_id", "role"),)

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        return super().get_formset(request, obj, **{**kwargs, "form": membership_form_for(request.user)})


admin.site.unregister(User)


@admin.register(User)
class UserAccountAdmin(StaffAccessMixin, UserAdmin):
    """Superusers keep the users; other staff see them and keep the memberships they manage."""

    inlines: ClassVar = [MembershipInline]
    list_display = ("username", "email", "is_active", "is_staff", "is_superuser", "last_login")
    readonly_fields = ("last_login", "date_joined")
    filter_horizontal = ()  # Django's double lists have no names for a screen reader

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
        """Another's password is a superuser's matter; one's own is changed on the account's page."""
        if not request.user.is_superuser:
            raise PermissionDenied
        answer: HttpResponse = super().user_change_password(request, id, form_url)
        return answer


@admin.register(ApiKey)
class ApiKeyAdmin(StaffAccessMixin, admin.ModelAdmin):
    """Keys without their secrets: each is shown once, when it is made, and can be revoked at any time."""

    list_display = ("name", "prefix", "user", "cut_to", "created_at", "expires_at", "last_used_at", "valid")
    list_filter = ("role",)
    search_fields = ("name", "prefix", "user__username")
    readonly_fields = ("prefix", "created_at", "last_used_at", "revoked_at")
    actions = ("revoke",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiKey]:
        keys = super().get_queryset(request).select_related("user")
        return keys if request.user.is_superuser else keys.filter(user=request.user.pk)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = ("user", "name", "role", "expires_at")
        return fields if obj is None else (*fields, *self.readonly_fields)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.readonly_fields if obj is None else ("user", "role", "expires_at", *self.readonly_fields)

    formfield_overrides: ClassVar = {
        models.DateTimeField: {
            "form_class": forms.DateTimeField,  # Django's two fields for a date and a time have one label
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
        return False  # a revoked key stays, so that what it did can be read

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:
        if change:
            super().save_model(request, obj, form, change)
            return
        key, token = ApiKey.objects.issue(obj.user, name=obj.name, role=obj.role, expires_at=obj.expires_at)
        obj.pk = key.pk
        obj.prefix = key.prefix
        messages.warning(request, f"Copy the key now, it is not shown again: {token}")

    @admin.action(description="Revoke the selected keys")
    def revoke(self, request: HttpRequest, keys: QuerySet[ApiKey]) -> None:
        for key in keys:
            key.revoke()
        self.message_user(request, f"Revoked {len(keys)} keys.")

    @admin.display(description="Cut to")
    def cut_to(self, key: ApiKey) -> str:
        return key.get_role_display() if key.role else "its user's role"

    @admin.display(boolean=True)
    def valid(self, key: ApiKey) -> bool:
        return key.is_valid
