"""Running agents with the published JavaScript client."""

from pathlib import Path

import pytest

from tests.client_js.driver import drive
from tests.served import Served

AGENTS = ("plain", "remembering", "broken")  # the agents that the script creates


@pytest.fixture
def copy(served: Served):
    """Return the shared copy, without the agents of the script after the test."""
    yield served
    with served.client(served.keys["publisher"]) as client:
        for agent_id in AGENTS:
            client.delete(f"/api/stored/agents/{agent_id}").raise_for_status()


@pytest.mark.parametrize("client", ["client-oldest", "client-newest"])
def test_the_client_runs_agents_and_reads_their_answers(installed: Path, copy: Served, client: str):
    printed = drive(installed, "drive_runs.mjs", client, copy.base_url, copy.keys["publisher"])

    assert printed == "done\n"
