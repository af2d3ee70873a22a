"""MCP servers and their tools with the published JavaScript client."""

import uuid
from pathlib import Path

import pytest

from tests.client_js.driver import drive
from tests.served import Served


@pytest.mark.parametrize("client", ["client-oldest", "client-newest"])
def test_the_client_keeps_servers_and_calls_their_tools(
    installed: Path,
    served: Served,
    shop_url: str,
    client: str,
):
    server_id = f"shop-{uuid.uuid4().hex[:8]}"

    printed = drive(
        installed,
        "drive_mcp.mjs",
        client,
        served.base_url,
        served.keys["root"],
        served.keys["editor"],
        server_id,
        shop_url,
        seconds=180,
    )

    assert printed == "done\n"
