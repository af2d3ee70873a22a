"""Comparing unsaved text with versions in a browser."""

from typing import Any

from playwright.sync_api import expect

from tests.browser.conftest import patch_agent


def test_unsaved_text_can_be_chosen_for_comparison(visit: Any, agent: str, api: Any):
    visitor = visit()
    page = visitor.goto(f"/agents/{agent}/versions/compare?from=1&to=2")
    expect(page.get_by_label("To", exact=True).get_by_role("option", name="My unsaved text")).to_have_count(0)
    page = visitor.goto(f"/agents/{agent}")
    page.get_by_role("textbox", name="Description").fill("Mine, not saved")
    expect(page.get_by_text("Unsaved", exact=True)).to_be_visible()
    patch_agent(api, agent, instructions="Theirs meanwhile.")

    other = visitor.open()
    other.goto(f"{visitor.base_url}/agents/{agent}/versions/compare?from=1&to=2")
    other.get_by_label("To", exact=True).select_option("My unsaved text")
    other.get_by_role("button", name="Compare").click()

    expect(other.get_by_role("heading", level=2).first).to_have_text("Review changes")
    expect(other.locator("#review-title")).to_have_text("Unsaved changes since v1")
    expect(other.locator("#section-description")).to_contain_text("Mine, not saved")
    assert visitor.console == []
