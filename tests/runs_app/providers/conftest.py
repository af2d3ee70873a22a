"""The stub server of providers."""

from ipaddress import ip_network

import pytest

from runs_app.providers import table
from tests.provider_stub.server import KEY, PROVIDERS, ProviderStub, run_provider_stub


@pytest.fixture(scope="session")
def running_provider_stub(tmp_path_factory) -> ProviderStub:
    with run_provider_stub(tmp_path_factory.mktemp("models") / "log") as server:
        yield server


@pytest.fixture
def provider_stub(running_provider_stub, settings) -> ProviderStub:
    """Configure the stub server for every provider and clear its requests."""
    running_provider_stub.forget()
    settings.OUTBOUND_NETWORKS = [ip_network("127.0.0.0/8")]
    settings.MODEL_KEYS = dict.fromkeys(PROVIDERS, KEY)
    settings.MODEL_URLS = running_provider_stub.urls
    table.invalidate()
    yield running_provider_stub
    table.invalidate()
