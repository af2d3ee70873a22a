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

    expect(other).to_have_title("v1 and My unsaved text of Night porter · Agent CMS")
    expect(other.locator("#section-description .added-side")).to_contain_text(["Mine, not saved"])
    expect(other.locator("[data-change-position]")).to_contain_text("change")
    other.get_by_role("button", name="Swap the two versions").click()
    expect(other).to_have_title("My unsaved text and v1 of Night porter · Agent CMS")
    expect(other.locator("#section-description .removed-side")).to_contain_text(["Mine, not saved"])
    assert visitor.console == []
