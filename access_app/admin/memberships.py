"""Memberships of teams in the admin, as a list and in the page of a user."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Field, Model, QuerySet
from django.http import HttpRequest, HttpResponse

from access_app.admin_base.concurrent_changes import LockedChangeMixin
from access_app.admin_base.lists import TeamColumnMixin
from access_app.admin_base.staff_access import StaffAccessMixin
from access_app.admin_base.staff_roles import staff_has_role
from access_app.admin_base.team_fields import offer_teams
from access_app.caller import Caller
from access_app.forms.members import UNKNOWN_USERNAME_MESSAGE
from access_app.members import gone_messages, lock_managed_teams, lock_teams, reject_loss_of_managers
from access_app.models import Membership
from access_app.permissions import has_role
from access_app.role import Role
from access_app.teams import can_be_owner, managed_memberships

User = get_user_model()


def reject_changed_rights(user: Caller, memberships: Sequence[Membership], new_owners: Sequence[str] = ()) -> None:
    """Check under the lock of their teams that the user may end memberships, and begin one in new teams.

    Raise RoleRequired if the user no longer manages the teams, and ValidationError for memberships that were
    deleted or moved meanwhile and for the last manager of a team.
    """
    lock_managed_teams(user, [*(membership.owner_id for membership in memberships), *new_owners])
    if messages := gone_messages(memberships):
        raise ValidationError(messages, code="gone")
    reject_loss_of_managers(memberships)


class MembershipForm(forms.ModelForm):
    """A form that accepts only owners that the user manages."""

    user: Any = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if field := self.fields.get("owner_id"):
            current = [] if self.instance._state.adding else [self.instance.owner_id]
            offer_teams(field, self.user, *current)
            field.help_text = "A new team is created on the page Team, with its first member."

    def clean_owner_id(self) -> str:
        owner_id: str = self.cleaned_data["owner_id"]
        if not has_role(self.user, Role.MANAGER, owner_id):
            self.add_error("owner_id", "You can only add members to teams that you manage.")
        return owner_id

    def clean(self) -> dict[str, Any]:
        """Reject a change that takes the last manager from a team, or that gives a user a second role in one."""
        cleaned = super().clean() or {}
        before = Membership.objects.filter(pk=self.instance.pk).first()
        # Whoever is a manager of the same team afterwards takes none from it.
        stays = before and (cleaned.get("owner_id"), cleaned.get("role")) == (before.owner_id, Role.MANAGER)
        if not stays:
            self.check_under_lock(before, None if "owner_id" in self.errors else cleaned.get("owner_id"))
        # Django leaves out the constraint, because the user of a stored membership is not a field of the form.
        others = Membership.objects.filter(owner_id=cleaned.get("owner_id")).exclude(pk=self.instance.pk)
        if before and others.filter(user=before.user_id).exists():
            self.add_error("owner_id", "The user is already a member of this team. Change the role there.")
        return cleaned

    def check_under_lock(self, before: Membership | None, owner_id: str | None) -> None:
        """Check the rights of the user again, who may have lost them meanwhile, and that a manager remains."""
        reject_changed_rights(self.user, [before] if before else [], [] if owner_id is None else [owner_id])


class MembershipFormSet(forms.BaseInlineFormSet):
    """The memberships of a user, of which the last manager of a team cannot be deleted."""

    def clean(self) -> None:
        super().clean()
        deleted: list[Any] = self.deleted_forms
        if deleted:
            # All at once, so that two rows together do not remove the last two managers of a team.
            reject_changed_rights(deleted[0].user, [form.instance for form in deleted])

    def get_unique_error_message(self, unique_check: Sequence[str]) -> str:
        return "A user has one role in a team. Remove one of the two memberships of the same team."

    def get_form_error(self) -> str:
        return "There is another membership of this team."


class TeamManagersMixin:
    """A mixin that deletes no last manager of a team, neither on the page of a row nor on the list.

    It stands before `LockedRowMixin`: the teams are locked before the row.
    """

    @staticmethod
    def memberships_of(objs: Iterable[Any]) -> Iterable[Membership]:
        """Return the memberships that are deleted with rows."""
        raise NotImplementedError

    def lock_row(self, request: HttpRequest, object_id: str | None) -> None:
        """Lock the teams of the memberships of a row, and those that the form names, and then the row.

        The checks of the forms lock the teams one by one, and the name of the superusers between them.
        """
        owner_ids = set(sent_owners(request))
        with suppress(ValidationError, ValueError):  # an ID that Django does not find either
            rows = self.model._default_manager.filter(pk=unquote(object_id)) if object_id else ()  # type: ignore[attr-defined]
            owner_ids |= {membership.owner_id for membership in self.memberships_of(rows)}
        lock_teams(owner_ids)
        super().lock_row(request, object_id)  # type: ignore[misc]

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Return the last managers as protected objects, so that nothing is deleted.

        Raise RoleRequired if the user no longer manages their teams.
        """
        rows = list(objs)
        deleted, counts, lacking, protected = super().get_deleted_objects(objs, request)  # type: ignore[misc]
        memberships = [*self.memberships_of(rows)]
        lock_managed_teams(request.user, [membership.owner_id for membership in memberships])
        protected = [*protected, *gone_messages(memberships)]
        try:
            reject_loss_of_managers(memberships)
        except ValidationError as error:
            protected = [*protected, *error.messages]
        return deleted, counts, lacking, protected

    @transaction.atomic
    def changelist_view(self, request: HttpRequest, extra_context: object = None) -> HttpResponse:
        """Display the list or run an action, in one transaction with its checks."""
        # The check of an action holds a lock, and without the transaction the lock would end before the deletion.
        response: HttpResponse = super().changelist_view(request, extra_context)  # type: ignore[misc]
        return response


def sent_owners(request: HttpRequest) -> list[str]:
    """Return the teams that a sent form names, also in its inlines. A page has a template of an inline, too."""
    # An inline names its inputs `memberships-0-owner_id`, and its hidden template has `__prefix__` for the number.
    names = [name for name in request.POST if name.rpartition("-")[2] == "owner_id" and "__prefix__" not in name]
    return [*filter(can_be_owner, map(request.POST.__getitem__, names))]


class MembershipAccessMixin(StaffAccessMixin):
    """A mixin that lets managers of an owner change its memberships."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return super().has_module_permission(request) and staff_has_role(request, Role.MANAGER)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Membership]:
        return managed_memberships(request.user).select_related("user")

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return (
            self.has_module_permission(request) and managed_memberships(request.user).exists()
        ) or request.user.is_superuser

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        if isinstance(obj, Membership):
            return has_role(request.user, Role.MANAGER, obj.owner_id)
        return self.has_module_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.has_change_permission(request, obj)


def membership_form_for(user: Caller) -> type[MembershipForm]:
    """Return a form class that has the user."""
    return type("MembershipForm", (MembershipForm,), {"user": user})


@admin.register(Membership)
class MembershipAdmin(TeamColumnMixin, TeamManagersMixin, LockedChangeMixin, MembershipAccessMixin, admin.ModelAdmin):
    """The page of memberships."""

    @staticmethod
    def memberships_of(objs: Iterable[Any]) -> Iterable[Membership]:
        return objs

    list_display = ("user", "team", "role")
    list_filter = ("role",)
    search_fields = ("user__username", "owner_id")

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        return () if obj is None else ("user",)

    def formfield_for_dbfield(self, db_field: Field, request: HttpRequest, **kwargs: Any) -> Any:
        """Return a field for the username: the select with search has no name for screen readers.

        Not `formfield_for_foreignkey`, to which Django adds links whose popups write the ID of a user into the field.
        """
        if db_field.name != "user":
            return super().formfield_for_dbfield(db_field, request, **kwargs)
        return forms.ModelChoiceField(
            User.objects.all(),
            to_field_name="username",
            label="Username",
            widget=forms.TextInput({"class": "vTextField"}),
            error_messages={"invalid_choice": UNKNOWN_USERNAME_MESSAGE},
        )

    def get_form(self, request: HttpRequest, obj: Model | None = None, change: bool = False, **kwargs: Any) -> Any:
        return super().get_form(request, obj, change, **{**kwargs, "form": membership_form_for(request.user)})


class MembershipInline(MembershipAccessMixin, admin.StackedInline):
    """The memberships on the page of a user."""

    model = Membership
    formset = MembershipFormSet
    extra = 0
    fields = (("owner_id", "role"),)

    def get_formset(self, request: HttpRequest, obj: Model | None = None, **kwargs: Any) -> Any:
        return super().get_formset(request, obj, **{**kwargs, "form": membership_form_for(request.user)})
