"""The import of the clients of MCP servers when a process starts."""

from __future__ import annotations

import logging
from importlib import import_module

from django.db import Error as DatabaseError
from django.db import connection

from agentcms.logs import describe_exception
from tools_app.models import McpServer

log = logging.getLogger(__name__)


def preload_clients() -> None:
    """Import the clients if there are servers, so that the first call does not wait for it. It takes seconds.

    Call it before the process starts threads and before it forks. The connection to the database is closed again. If
    the database is away, the first call imports the clients.
    """
    try:
        is_used = McpServer.objects.filter(is_enabled=True).exists()
    except DatabaseError as error:
        log.info("The MCP servers could not be read: %s", describe_exception(error))
        is_used = False
    finally:
        close_connection()
    if is_used:
        import_module("tools_app.mcp.calls")


def close_connection() -> None:
    """Close the connection, with the pool that PostgreSQL has: a fork may not share them."""
    connection.close()
    if connection.vendor == "postgresql":
        connection.close_pool()  # type: ignore[attr-defined]
