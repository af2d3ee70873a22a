"""The admin of retention rules."""

from __future__ import annotations

from django.contrib import admin

from access_app.admin.owner_rules import OwnerRuleAdmin
from versions_app import tasks  # noqa: F401  registers the jobs that superusers start
from versions_app.models.retention_rule import RetentionRule


@admin.register(RetentionRule)
class RetentionRuleAdmin(OwnerRuleAdmin):
    """Retention rules. Managers see and change the rules of their own teams."""

    list_display = ("team", "versions", "days")
