"""The working memory of a conversation, edited in a browser."""

import json
import uuid
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import create_agent

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}


@pytest.fixture
def thread(api: Any) -> str:
    """Start a conversation with an agent whose working memory has a schema. Return its ID."""
    key = f"profile-{uuid.uuid4().hex[:8]}"
    create_agent(api, key, memory={"options": {"workingMemory": {"enabled": True, "schema": SCHEMA}}})
    body = {"messages": "Hello", "memory": {"thread": key, "resource": key}}
    assert api.post(f"/api/agents/{key}/generate", json=body).status_code == 200
    return key


def test_a_working_memory_is_edited_in_fields_and_as_json(visit, thread):
    visitor = visit()
    path = f"/threads/{thread}/working-memory"
    page = visitor.goto(path)
    page.get_by_label("Name").fill("Ada")
    page.get_by_label("Age optional").fill("seven")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("[data-row-error]")).to_be_visible()

    page.get_by_label("Age optional").fill("36")
    page.get_by_role("button", name="Edit Working memory as JSON").click()
    text = page.get_by_label("Working memory (JSON)")
    expect(text).to_be_visible()
    assert json.loads(text.input_value()) == {"name": "Ada", "age": 36}
    text.fill('{"name": "Ada", "age": 37, "hobby": "chess"}')
    page.get_by_role("button", name="Save").click()

    expect(page.get_by_text("The working memory was saved.")).to_be_visible()
    page = visitor.goto(path)
    expect(page.get_by_label("Age optional")).to_have_value("37")
    expect(page.get_by_role("textbox", name="Value of hobby")).to_have_value("chess")
