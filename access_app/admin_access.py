"""Which pages of the admin are open to all staff, and which of those are for reading alone."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse


class StaffAccessMixin:
    """Whoever may open the admin sees the page; what is on it depends on roles, not on Django's permissions."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_active and request.user.is_staff)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_module_permission(request)


def confirmation_page(
    page: admin.ModelAdmin[Any], request: HttpRequest, template: str, title: str, **said: Any
) -> HttpResponse:
    """A page of the admin that asks before something is done."""
    context = {**page.admin_site.each_context(request), "title": title, "opts": page.opts, **said}
    return TemplateResponse(request, f"admin/{template}.html", context)


class ReadOnlyAdmin(StaffAccessMixin, admin.ModelAdmin):
    """Rows that nobody adds, changes or deletes in the admin; `get_queryset` chooses which of them staff see."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
