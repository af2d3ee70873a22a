"""Base classes for admin pages that are open to all staff."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from access_app.admin_base.lists import CheckedListMixin


class StaffAccessMixin(CheckedListMixin):
    """A mixin that shows the page to all staff. Roles decide on the rows; Django's permissions are not used."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_active and request.user.is_staff)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_module_permission(request)


class ReadOnlyAdmin(StaffAccessMixin, admin.ModelAdmin):
    """An admin page without adding, changing and deleting. `get_queryset` limits the rows that staff see."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
