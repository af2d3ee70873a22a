"""The fixtures of browser tests of runs."""

import uuid
from typing import Any

import httpx
import pytest

from tests.browser.conftest import make, patch


@pytest.fixture
def slow(api: httpx.Client) -> str:
    """The id of an agent with two versions that answers word by word for a while."""
    agent_id = f"slow-{uuid.uuid4().hex[:8]}"
    make(api, agent_id, model={"provider": "demo", "name": "storyteller", "delay": 0.25})
    patch(api, agent_id, description="Slow too")
    return agent_id


@pytest.fixture
def ask() -> Any:
    """Opens Try it and asks; returns the page."""

    def begin(visitor: Any, agent_id: str, message: str = "Hello", columns: str = "live") -> Any:
        page = visitor.goto(f"/agents/{agent_id}/try?columns={columns}")
        page.get_by_label("Message").fill(message)
        page.keyboard.press("Control+Enter")
        return page

    return begin
