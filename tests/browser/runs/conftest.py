"""The fixtures of browser tests of runs."""

import uuid
from typing import Any

import httpx
import pytest

from tests.browser.conftest import create_agent, patch_agent


@pytest.fixture
def slow(api: httpx.Client) -> str:
    """Return the id of an agent with two versions that answers slowly."""
    agent_id = f"slow-{uuid.uuid4().hex[:8]}"
    create_agent(api, agent_id, model={"provider": "demo", "name": "storyteller", "delay": 0.25})
    patch_agent(api, agent_id, description="Slow too")
    return agent_id


@pytest.fixture
def ask() -> Any:
    """Return a function that opens the playground, sends a message and returns the page."""

    def begin(visitor: Any, agent_id: str, message: str = "Hello", columns: str = "live") -> Any:
        page = visitor.goto(f"/agents/{agent_id}/try?columns={columns}")
        page.get_by_label("Message").fill(message)
        page.keyboard.press("Control+Enter")
        return page

    return begin
