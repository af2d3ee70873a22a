"""The page of a conversation that goes on, in a browser."""

import uuid
from typing import Any

from playwright.sync_api import expect

from tests.browser.conftest import create_agent


def test_the_number_of_messages_grows_with_them(visit, api: Any):
    key = f"trip-{uuid.uuid4().hex[:8]}"
    create_agent(api, key, memory="last-messages")
    body = {"messages": "Hello", "memory": {"thread": key, "resource": key}}
    assert api.post(f"/api/agents/{key}/generate", json=body).status_code == 200
    page = visit().goto(f"/threads/{key}")
    pages = page.get_by_role("navigation", name="Pagination")
    expect(pages).to_contain_text("2 messages")
    heading = page.get_by_role("heading", name="Details")
    assert heading.evaluate("element => getComputedStyle(element).marginBottom") == "0px"  # in the middle of its bar

    assert api.post(f"/api/agents/{key}/generate", json={**body, "messages": "Are you there?"}).status_code == 200

    expect(page.get_by_text("You said: Are you there?")).to_be_visible()
    expect(pages).to_contain_text("4 messages")
