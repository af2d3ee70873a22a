"""Signal receivers of this app."""

from __future__ import annotations

from typing import Any

from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver

from tools_app.mcp import table
from tools_app.models import McpServer


@receiver([post_save, post_delete], sender=McpServer)
def invalidate_servers(**kwargs: Any) -> None:
    """Apply a change of servers in this process at once. Other processes apply it within a second."""
    table.invalidate()
