"""Knowledge bases as vector stores with the published JavaScript client."""

import uuid
from pathlib import Path

import pytest

from tests.client_js.driver import drive
from tests.served import Served


@pytest.mark.parametrize("client", ["client-oldest", "client-newest"])
def test_the_client_stores_and_searches_vectors(installed: Path, served: Served, client: str):
    base_id = f"vectors-{uuid.uuid4().hex[:8]}"

    printed = drive(installed, "drive_vectors.mjs", client, served.base_url, served.keys["publisher"], base_id)

    assert printed == "done\n"
