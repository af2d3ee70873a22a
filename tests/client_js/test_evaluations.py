"""Datasets and experiments with the newest published JavaScript client."""

import uuid
from pathlib import Path

from tests.client_js.driver import drive
from tests.served import Served


def test_the_client_uses_datasets_and_experiments(installed: Path, served: Served):
    agent_id = f"evaluated-{uuid.uuid4().hex[:8]}"
    arguments = [served.base_url, served.keys["python"], served.keys["publisher"], agent_id]
    try:
        printed = drive(installed, "drive_evals.mjs", *arguments)
    finally:
        with served.client(served.keys["python"]) as cms:
            cms.delete(f"/api/stored/agents/{agent_id}").raise_for_status()

    assert int(printed) >= 130
