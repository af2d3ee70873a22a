"""Decisions about tool calls with the published JavaScript client."""

import uuid
from pathlib import Path

import pytest

from tests.client_js.driver import drive
from tests.served import Served


@pytest.mark.parametrize("client", ["client-oldest", "client-newest"])
def test_the_client_decides_calls_that_wait(installed: Path, served: Served, client: str):
    agent_id = f"approved-{uuid.uuid4().hex[:8]}"
    try:
        printed = drive(installed, "drive_approvals.mjs", client, served.base_url, served.keys["publisher"], agent_id)
    finally:
        with served.client(served.keys["publisher"]) as cms:
            for id in (agent_id, f"{agent_id}-router", f"{agent_id}-helper"):
                cms.delete(f"/api/stored/agents/{id}").raise_for_status()

    assert printed == "done\n"
