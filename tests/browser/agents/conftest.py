"""The fixtures of browser tests of agents."""

import uuid

import httpx
import pytest

from tests.browser.conftest import make


@pytest.fixture
def fresh(api: httpx.Client) -> str:
    """The id of an agent with one version."""
    agent_id = f"agent-{uuid.uuid4().hex[:8]}"
    make(api, agent_id)
    return agent_id
