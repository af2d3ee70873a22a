"""The published JavaScript client, in the oldest and newest supported version."""

from pathlib import Path

import pytest

from tests.client_js.driver import drive
from tests.served import Served

HERE = Path(__file__).parent


@pytest.mark.parametrize("client", ["client-oldest", "client-newest"])
@pytest.mark.parametrize("agent_id", ["concierge", "Ünï 100% a?b#c&d=e+f"])
def test_every_method_of_the_client_works(installed: Path, served: Served, client: str, agent_id: str):
    printed = drive(installed, "drive.mjs", client, served.base_url, served.keys["publisher"], agent_id, seconds=60)

    assert printed.endswith(" requests\n")


def test_the_lock_file_names_no_registry():
    assert "://registry" not in (HERE / "package-lock.json").read_text()
    assert "resolved" not in (HERE / "package-lock.json").read_text()
