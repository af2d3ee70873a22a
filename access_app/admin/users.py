"""Users in the admin."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.forms import UserChangeForm
from django.contrib.auth.models import AbstractUser, Group
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse

from access_app.admin.memberships import MembershipInline, TeamManagersMixin
from access_app.admin_base.concurrent_changes import LockedChangeMixin
from access_app.admin_base.staff_access import StaffAccessMixin
from access_app.admin_base.staff_roles import staff_has_role
from access_app.forms.password import AccountPasswordForm, NewAccountForm
from access_app.members import lock_teams, reject_loss_of_managers, reject_loss_of_superusers
from access_app.models import Membership
from access_app.role import Role

User = get_user_model()
HAS_DATA_MESSAGE = "The admin deletes no user who has data of these kinds: {}. Deactivate the user instead."
SUPERUSER_COLUMNS = ("is_active", "is_staff", "is_superuser")

admin.site.unregister(User)
admin.site.unregister(Group)  # roles decide; Django's groups and permissions are not used


class AccountForm(UserChangeForm):
    """The form of a user, who cannot be deactivated as the last manager of a team."""

    def clean_username(self) -> str:
        """Refuse a name that another user has in upper or lower case, as the form of a new user does."""
        username: str = self.cleaned_data["username"]
        others = User.objects.filter(username__iexact=username).exclude(pk=self.instance.pk)
        if "username" in self.changed_data and others.exists():
            raise ValidationError(self.instance.unique_error_message(User, ["username"]))
        return username

    def clean_is_active(self) -> bool:
        is_active: bool = self.cleaned_data["is_active"]
        if not is_active:
            reject_loss_of_managers(self.instance.memberships.all())
        return is_active

    def clean(self) -> dict[str, Any]:
        """Reject a change after which nobody could add users. The form of other staff has no inputs for it."""
        cleaned = super().clean() or {}
        if not all(cleaned.get(name, True) for name in SUPERUSER_COLUMNS):
            reject_loss_of_superusers([self.instance])
        return cleaned


@admin.register(User)
class UserAccountAdmin(TeamManagersMixin, LockedChangeMixin, StaffAccessMixin, UserAdmin):
    """The page of users. Superusers change users; other staff only the memberships that they manage."""

    form = AccountForm
    add_form = NewAccountForm
    change_password_form = AccountPasswordForm
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

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Say what to do with users whose rows the admin does not delete, such as API keys and conversations."""
        rows = User.objects.filter(pk__in=[user.pk for user in objs]).order_by("pk")
        if request.method == "POST":  # the page that asks locks nothing, because it has no transaction
            lock_teams(membership.owner_id for membership in self.memberships_of(objs))
            rows = rows.select_for_update()
        users = [*rows]
        deleted, counts, lacking, protected = super().get_deleted_objects(users, request)
        # Django would delete them too, and with them the record of what the user did.
        if LogEntry.objects.filter(user__in=users).exists():
            lacking = {*lacking, LogEntry._meta.verbose_name}
        if lacking:
            protected = [*protected, HAS_DATA_MESSAGE.format(", ".join(sorted(map(str, lacking))))]
        try:
            reject_loss_of_superusers(users)
        except ValidationError as error:
            protected = [*protected, *error.messages]
        return deleted, counts, set(), protected

    def displayed_beside_columns(self, row: Any) -> object:
        return [*row.memberships.order_by("pk").values_list("pk", "owner_id", "role")]

    def has_change_permission(self, request: HttpRequest, obj: AbstractUser | None = None) -> bool:
        # Other staff change only memberships in the teams that they manage.
        return self.has_module_permission(request) and staff_has_role(request, Role.MANAGER)

    def get_readonly_fields(self, request: HttpRequest, obj: AbstractUser | None = None) -> Any:
        if request.user.is_superuser:
            return super().get_readonly_fields(request, obj)
        return ("username", "first_name", "last_name", "email", "is_active", "last_login")

    def get_fieldsets(self, request: HttpRequest, obj: AbstractUser | None = None) -> Any:
        if request.user.is_superuser:
            return super().get_fieldsets(request, obj)
        return ((None, {"fields": self.get_readonly_fields(request, obj)}),)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.is_superuser

    def has_delete_permission(self, request: HttpRequest, obj: AbstractUser | None = None) -> bool:
        return request.user.is_superuser

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:
        """Let superusers set a password. Other users change their own on the account page."""
        if not request.user.is_superuser:
            raise PermissionDenied
        # In a transaction, to the end of which the check of the last superuser holds its lock.
        with transaction.atomic():
            if request.method == "POST":
                self.lock_row(request, id)  # before the lock of the check, as a change form does
            response: HttpResponse = super().user_change_password(request, id, form_url)
        return response
