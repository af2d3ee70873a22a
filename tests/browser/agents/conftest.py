"""The same browser and the same people as for the pages of a history."""

import uuid

import httpx
import pytest

from tests.browser.versions.conftest import agent, api, browser, make, people, visit

__all__ = ["agent", "api", "browser", "fresh", "people", "visit"]


@pytest.fixture
def fresh(api: httpx.Client) -> str:
    """The id of an agent with one version."""
    agent_id = f"agent-{uuid.uuid4().hex[:8]}"
    make(api, agent_id)
    return agent_id
