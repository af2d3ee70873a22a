"""Celery tasks of tools from outside."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from celery import shared_task
from celery.signals import worker_init

from jobs_app.runner import enqueue_once_per_period, offer_to_superusers
from tools_app.acp.workspaces import cleanup  # noqa: F401  registers the clean-up of workspaces
from tools_app.mcp.listing import LIST_TOOLS
from tools_app.models import McpServer
from tools_app.preload import preload_clients

offer_to_superusers("list-mcp-tools", "List the tools of all MCP servers", LIST_TOOLS)


@shared_task
def list_mcp_tools() -> None:
    """List the tools of all MCP servers, once a night even if several schedulers run."""
    if McpServer.objects.filter(is_enabled=True).exists():
        enqueue_once_per_period(LIST_TOOLS, timedelta(hours=12))


@worker_init.connect(weak=False)
def preload_mcp_clients(**kwargs: Any) -> None:
    """Import the clients of MCP servers before the worker starts its threads, if there are servers."""
    preload_clients()
