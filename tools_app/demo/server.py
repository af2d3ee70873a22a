"""The MCP server of the demo: the counter of a lamp shop. `make run` starts it over HTTP for the demo data alone.

    python -m tools_app.demo.server 127.0.0.77 8765

It imports nothing of the application and keeps reservations in memory.
"""

from __future__ import annotations

import sys
from typing import Annotated, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import ToolAnnotations
from pydantic import Field

OPENING_HOURS = {"Saturday": "10:00 to 16:00", "Sunday": "closed"}
WEEKDAY_HOURS = "9:00 to 18:00"
PRICES = {"AT": 690, "DE": 490, "FR": 890, "SE": 1190}  # cents up to 2 kg
CENTS_PER_KILOGRAM = 150  # beyond 2 kg
MAX_GRAMS = 30_000

Day = Literal["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]

server = MCPServer("Shop counter", log_level="WARNING")
stock = {"desk-lamp": 12, "floor-lamp": 3, "night-light": 40}


@server.tool(title="Opening hours", annotations=ToolAnnotations(read_only_hint=True))
def opening_hours(day: Day) -> str:
    """Return when the shop is open on a day of the week."""
    return OPENING_HOURS.get(day, WEEKDAY_HOURS)


@server.tool(title="Shipping price", annotations=ToolAnnotations(read_only_hint=True))
def shipping_price(
    country: Annotated[str, Field(description="A code of two letters, such as DE.")],
    grams: Annotated[int, Field(ge=1, le=MAX_GRAMS)],
) -> str:
    """Return what it costs to send a parcel."""
    base = PRICES.get(country.upper())
    if base is None:
        raise ToolError(f"The shop does not ship to {country}. It ships to {', '.join(sorted(PRICES))}.")
    cents = base + CENTS_PER_KILOGRAM * max(0, -(-(grams - 2000) // 1000))
    return f"{cents // 100}.{cents % 100:02} EUR"


@server.tool(title="Stock", annotations=ToolAnnotations(read_only_hint=True))
def stock_level(article: Literal["desk-lamp", "floor-lamp", "night-light"]) -> int:
    """Return how many pieces of an article are in the shop."""
    return stock[article]


@server.tool(title="Reserve", annotations=ToolAnnotations(read_only_hint=False))
def reserve(
    article: Literal["desk-lamp", "floor-lamp", "night-light"], pieces: Annotated[int, Field(ge=1, le=10)]
) -> str:
    """Set pieces of an article aside for a customer. The reservation ends when the demo stops."""
    if stock[article] < pieces:
        raise ToolError(f"Only {stock[article]} pieces are left.")
    stock[article] -= pieces
    return f"Reserved {pieces}. {stock[article]} are left."


def main(host: str, port: str) -> None:
    # Pages of a browser that resolve their name to this address are refused.
    security = TransportSecuritySettings(enable_dns_rebinding_protection=True, allowed_hosts=[f"{host}:{port}"])
    server.run("streamable-http", host=host, port=int(port), transport_security=security)


if __name__ == "__main__":
    main(*sys.argv[1:])
