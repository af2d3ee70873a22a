"""The fixtures of browser tests of agents."""

import uuid

import httpx
import pytest

from tests.browser.conftest import create_agent


@pytest.fixture
def fresh(api: httpx.Client) -> str:
    """Return the id of a new agent with one version."""
    agent_id = f"agent-{uuid.uuid4().hex[:8]}"
    create_agent(api, agent_id)
    return agent_id
