"""Signals and messages to threads with the published JavaScript client."""

import uuid
from pathlib import Path

import pytest

from tests.client_js.driver import drive
from tests.served import Served


@pytest.mark.parametrize("client", ["client-oldest", "client-newest"])
def test_the_client_sends_signals_and_follows_a_thread(installed: Path, served: Served, client: str):
    agent_id = f"signals-{uuid.uuid4().hex[:8]}"

    printed = drive(installed, "drive_signals.mjs", client, served.base_url, served.keys["publisher"], agent_id)

    assert printed == "done\n"
