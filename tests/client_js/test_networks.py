"""Every chunk of a network, and of a tool that asks a question, with the published JavaScript client."""

import uuid
from pathlib import Path

import pytest

from tests.client_js.driver import drive
from tests.served import Served


@pytest.mark.parametrize("client", ["client-oldest", "client-newest"])
def test_the_client_reads_each_chunk_of_a_network(installed: Path, served: Served, client: str):
    agent_id = f"routing-{uuid.uuid4().hex[:8]}"
    try:
        printed = drive(installed, "drive_networks.mjs", client, served.base_url, served.keys["publisher"], agent_id)
    finally:
        with served.client(served.keys["publisher"]) as cms:
            for id in (f"{agent_id}-router", agent_id, f"{agent_id}-helper"):
                cms.delete(f"/api/stored/agents/{id}").raise_for_status()

    assert printed == "done\n"
