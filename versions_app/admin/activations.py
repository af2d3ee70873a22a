"""The admin of the live history."""

from __future__ import annotations

from django.contrib import admin

from versions_app import tasks  # noqa: F401  registers the jobs that superusers start
from versions_app.admin.history import HistoryAdmin
from versions_app.models import Activation


@admin.register(Activation)
class ActivationAdmin(HistoryAdmin):
    """Read-only list of the live history."""

    list_display = ("agent", "live_change", "author_name", "source", "reason", "created_at")
    list_filter = ("source", "created_at")
    search_fields = ("agent__id", "author_name", "reason")
    fields = list_display

    @admin.display(description="Live")
    def live_change(self, activation: Activation) -> str:
        return activation.live_change
