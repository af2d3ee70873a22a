"""Pages of the admin that ask before an action."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse


def confirmation_page(
    page: admin.ModelAdmin[Any], request: HttpRequest, template: str, title: str, **context: Any
) -> HttpResponse:
    """Return an admin page that asks for confirmation before an action."""
    common = {**page.admin_site.each_context(request), "title": title, "opts": page.opts}
    return TemplateResponse(request, f"admin/{template}.html", {**common, **context})
