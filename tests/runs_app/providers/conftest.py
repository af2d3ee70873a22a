"""What the tests over real HTTP share."""

from ipaddress import ip_network

import pytest

from runs_app.providers import table
from tests.provider_stub.server import KEY, PROVIDERS, StandIn, standing_in


@pytest.fixture(scope="session")
def running_stand_in(tmp_path_factory) -> StandIn:
    with standing_in(tmp_path_factory.mktemp("models") / "log") as server:
        yield server


@pytest.fixture
def stand_in(running_stand_in, settings) -> StandIn:
    """The server that stands in for every provider, allowed and with a key, asked nothing yet."""
    running_stand_in.forget()
    settings.MODEL_NETWORKS = [ip_network("127.0.0.0/8")]
    settings.MODEL_KEYS = dict.fromkeys(PROVIDERS, KEY)
    settings.MODEL_URLS = running_stand_in.urls
    table.invalidate()
    yield running_stand_in
    table.invalidate()
