"""Signal receivers of this app."""

from __future__ import annotations

from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver

from runs_app.approvals.approval_signals import approval_stored
from runs_app.models import PendingCall
from tools_app.acp.cached_agents import acp_table
from tools_app.acp.permissions import remember_always
from tools_app.mcp.cached_servers import server_table
from tools_app.models import AcpAgent, McpServer


@receiver([post_save, post_delete], sender=McpServer)
def invalidate_servers(**kwargs: object) -> None:
    """Apply a change of servers in this process at once. Other processes apply it within a second."""
    server_table.invalidate_after_change()


@receiver([post_save, post_delete], sender=AcpAgent)
def invalidate_acp_agents(**kwargs: object) -> None:
    """Apply a change of ACP agents in this process at once. Other processes apply it within a second."""
    acp_table.invalidate_after_change()


@receiver(approval_stored, sender=PendingCall)
def remember_permission(call: PendingCall, **kwargs: object) -> None:
    """Keep the answer to a request of an ACP agent for the whole conversation, if a person chose so."""
    remember_always(call)
