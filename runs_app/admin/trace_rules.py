"""The admin of trace rules."""

from __future__ import annotations

from django.contrib import admin

from runs_app.models import TraceRule
from versions_app.admin.retention import OwnerRuleAdmin


@admin.register(TraceRule)
class TraceRuleAdmin(OwnerRuleAdmin):
    """Trace rules. Managers see and change the rules of their own teams."""

    list_display = ("team", "allows_content")
