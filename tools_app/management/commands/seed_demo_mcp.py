"""The MCP server of the demo, with an agent that uses it."""

from __future__ import annotations

import asyncio
import os

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import transaction

from agents_app.editing.change_context import change
from agents_app.models import Agent
from tools_app.demo.address import PORT_FILE, URL_VARIABLE
from tools_app.mcp.definitions import Listing, parse_listing
from tools_app.mcp.listing import enqueue_listing, store_listing
from tools_app.models import McpServer

SERVER_KEY = "demo-mcp"
PREFIX = "shop"
AGENT_ID = "shop-counter"
NEIGHBOUR_ID = "delivery-planner"  # a demo agent, without which there is no demo
INSTRUCTIONS = """
Answer customers of a lamp shop.

Ask the tools for opening hours, prices and stock. Never guess them.
A person approves each reservation. Say so before you make one."""


class Command(BaseCommand):
    """Creates the MCP server of the demo, or corrects its address. Does nothing if `make run` started none."""

    help = "Create the MCP server of the demo and an agent that uses its tools."

    def handle(self, *args: object, **options: object) -> None:
        url = os.environ.get(URL_VARIABLE, "")
        row = McpServer.objects.filter(key=SERVER_KEY).first()
        if not url or (row is None and not Agent.objects.filter(pk=NEIGHBOUR_ID).exists()):
            (settings.DATA_DIR / PORT_FILE).unlink(missing_ok=True)  # then the server is not started
            return
        if row is None:
            with transaction.atomic():
                create_server(url)
                create_agent()
            self.stdout.write(f"The MCP server {SERVER_KEY} and the agent {AGENT_ID} were created.")
        elif row.url != url:  # its port was in use
            row.url = url
            row.save()
            enqueue_listing(row)


def create_server(url: str) -> None:
    row = McpServer(key=SERVER_KEY, title="Shop counter", url=url, prefix=PREFIX)
    row.description = "Opening hours, shipping prices and stock of a lamp shop. It runs while the demo runs."
    row.save()
    store_listing(row.pk, list_demo_tools())  # the server itself starts later


def list_demo_tools() -> Listing:
    """Return the tools of the server without a connection to it."""
    from tools_app.demo.server import server  # imports the MCP library, which is heavy

    tools = asyncio.run(server.list_tools())
    return parse_listing(tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools)


def create_agent() -> None:
    if Agent.objects.filter(pk=AGENT_ID).exists():
        return
    with change(message="Answers from the shop counter"):
        Agent.objects.create(
            id=AGENT_ID,
            name="Shop counter",
            description="Knows opening hours, prices and stock from an MCP server. Needs no key.",
            instructions=INSTRUCTIONS.strip(),
            model={"provider": "demo", "name": "echo"},
            mcp_clients={SERVER_KEY: {}},
            metadata={"tags": ["customers"]},
        )
