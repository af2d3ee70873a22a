"""The life of an agent and a decision about a call, with JavaScript off."""

import json
import uuid
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.conftest import live_number

ORDER = "issue-refund " + json.dumps({"order": "N-1", "amount": 180})


def test_an_agent_is_edited_published_run_and_its_call_decided_without_javascript(visit: Any, api: Any):
    page = visit(java_script_enabled=False).goto("/new-agent")
    agent = create(page, f"Clerk {uuid.uuid4().hex[:6]}")

    save_draft(page)
    assert live_number(api, agent) == 1
    edit_and_review(page)
    assert live_number(api, agent) == 3
    compare_and_roll_back(page)
    assert live_number(api, agent) == 1
    restore(page)
    assert live_number(api, agent) == 4
    run(page)
    decide(page)


def create(page: Page, name: str) -> str:
    page.get_by_role("textbox", name="Name").first.fill(name)
    page.get_by_role("textbox", name="Instructions").fill("Refund orders.")
    page.locator("#tools > summary").click()
    page.check("input[name=tools][value=issue-refund]")
    page.get_by_role("button", name="Create and publish v1").click()
    expect(page.locator("h1")).to_have_text(name)
    return page.url.rsplit("/", 1)[1]


def save_draft(page: Page) -> None:
    page.get_by_role("textbox", name="Description").fill("Refunds orders")
    page.get_by_role("button", name="Save draft").click()
    expect(page.locator(".toast")).to_contain_text("Draft v2 saved. v1 is still live.")


def edit_and_review(page: Page) -> None:
    page.get_by_role("textbox", name="Instructions").fill("Refund orders.\nAsk for the receipt.")
    page.get_by_role("button", name="Review changes").click()
    expect(page.locator("#review").get_by_role("row", name="added").last).to_contain_text("receipt")
    page.get_by_label("Message").fill("Ask for receipts")
    page.get_by_role("button", name="Publish v3").click()
    expect(page.locator(".toast")).to_contain_text("v3 is live")


def compare_and_roll_back(page: Page) -> None:
    page.get_by_role("link", name="History", exact=True).click()
    page.check("#pair-3")
    page.check("#pair-1")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("row", name="added").last).to_contain_text("receipt")
    page.get_by_role("link", name="Publish v1").click()
    page.get_by_role("button", name="Publish v1 (replaces v3)").click()
    expect(page.locator(".toast")).to_contain_text("v1 is live")


def restore(page: Page) -> None:
    page.get_by_role("link", name="History", exact=True).click()
    page.click("#restore-3")
    page.get_by_role("button", name="Restore and publish (replaces v1)").click()
    expect(page.locator(".toast")).to_contain_text("v4 is live, restored from v3")


def run(page: Page) -> None:
    page.get_by_role("link", name="Playground", exact=True).click()
    page.get_by_label("Message").fill(ORDER)
    page.get_by_role("button", name="Run", exact=True).click()
    refresh_until(page, "Waiting for a decision")


def refresh_until(page: Page, text: str) -> None:
    """Press Refresh until the answer has a text. Without JavaScript, an answer is not streamed."""
    for _ in range(100):
        if page.locator("main").get_by_text(text).count():
            return
        page.get_by_role("link", name="Refresh").click()
    raise AssertionError(page.locator("main").inner_text())


def decide(page: Page) -> None:
    page.locator("#tried").get_by_role("link", name="Edit", exact=True).click()
    page.get_by_label("Amount").fill("20")
    page.get_by_role("button", name="Approve with these arguments").click()
    expect(page.locator("[data-approval]")).to_contain_text("Approved by publisher")
    page.get_by_role("link", name="Open the run", exact=True).click()
    refresh_until(page, "Refunded 20.00 for order N-1")
