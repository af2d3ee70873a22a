"""The admin of trace rules."""

from __future__ import annotations

from django.contrib import admin

from access_app.admin.owner_rules import OwnerRuleAdmin
from runs_app.models import TraceRule


@admin.register(TraceRule)
class TraceRuleAdmin(OwnerRuleAdmin):
    """Trace rules. Managers see and change the rules of their own teams."""

    list_display = ("team", "allows_content")
