"""The base of the admins of rules with one row per team."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import Field, QuerySet
from django.http import HttpRequest

from access_app.admin_base.concurrent_changes import LockedChangeMixin
from access_app.admin_base.lists import TeamColumnMixin
from access_app.admin_base.staff_access import StaffAccessMixin
from access_app.admin_base.staff_roles import staff_has_role
from access_app.admin_base.team_fields import offer_teams
from access_app.permissions import has_role, has_role_everywhere, owner_ids_for
from access_app.role import Role


class OwnerRuleAdmin(TeamColumnMixin, LockedChangeMixin, StaffAccessMixin, admin.ModelAdmin):
    """An admin of rules with one row per owner. Managers see and change those of their own teams."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rules = super().get_queryset(request)
        if has_role_everywhere(request.user, Role.MANAGER):
            return rules
        return rules.filter(owner_id__in=owner_ids_for(request.user, Role.MANAGER))

    def formfield_for_dbfield(self, db_field: Field, request: HttpRequest, **kwargs: Any) -> Any:
        """Offer the teams of the user, and those that have a rule."""
        field: Any = super().formfield_for_dbfield(db_field, request, **kwargs)
        if db_field.name == "owner_id":
            offer_teams(field, request.user, *self.get_queryset(request).values_list("owner_id", flat=True))
            field.help_text = ""
        return field

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form: Any = super().get_form(request, obj, change, **kwargs)

        def clean_owner_id(self: Any) -> str:
            owner_id: str = self.cleaned_data["owner_id"]
            if not has_role(request.user, Role.MANAGER, owner_id):
                raise ValidationError("You can only set rules for teams that you manage.")
            return owner_id

        # A class for each request, because Django gives a form of the admin no request.
        return type("OwnerRuleForm", (form,), {"clean_owner_id": clean_owner_id})

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        if not self.has_module_permission(request):
            return False
        role = Role.MANAGER
        return staff_has_role(request, role) if obj is None else has_role(request.user, role, obj.owner_id)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_view_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_view_permission(request, obj)
