"""Background tasks with the published JavaScript client, whose oldest version has no methods for them."""

import uuid
from pathlib import Path

from tests.client_js.driver import drive
from tests.served import Served


def test_the_client_lists_reads_and_follows_background_tasks(installed: Path, served: Served):
    agent_id = f"tasks-{uuid.uuid4().hex[:8]}"

    printed = drive(
        installed, "drive_background_tasks.mjs", "client-newest", served.base_url, served.keys["publisher"], agent_id
    )

    assert printed == "done\n"
