"""The admin of the live history."""

from __future__ import annotations

from django.contrib import admin

from versions_app import tasks  # noqa: F401  it offers the jobs that staff may start
from versions_app.admin.versions import HistoryAdmin
from versions_app.models import Activation


@admin.register(Activation)
class ActivationAdmin(HistoryAdmin):
    list_display = ("agent", "moved", "author_name", "source", "reason", "created_at")
    list_filter = ("source", "created_at")
    search_fields = ("agent__id", "author_name", "reason")
    fields = list_display

    @admin.display(description="Live")
    def moved(self, activation: Activation) -> str:
        before = f"v{activation.from_version_number}\u00a0→\u00a0" if activation.from_version_number else ""
        return f"{before}v{activation.to_version_number}"
