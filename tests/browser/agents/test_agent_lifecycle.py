"""The life of an agent in a browser: create, edit, compare, publish, restore."""

import re
import uuid

from playwright.sync_api import expect

from tests.browser.agents.editor_page import append_text, publish
from tests.browser.conftest import live_number


def test_an_agent_is_created_edited_compared_published_and_restored(visit, api):
    visitor = visit()
    page = visitor.goto("/new-agent")
    page.get_by_label("Name", exact=True).fill(f"Usher {uuid.uuid4().hex[:6]}")
    append_text(page, "Show guests to their seats.")
    page.keyboard.press("Control+s")
    page.wait_for_url("**/agents/usher-*")
    agent = page.url.rsplit("/", 1)[1]

    append_text(page, " Speak softly.")
    publish(page)
    expect(page.locator("#agent-title")).to_contain_text("Live v2")

    page.get_by_role("link", name=re.compile("^History")).first.click()
    page.check("#pair-2")
    page.check("#pair-1")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("ins", has_text="Speak softly").first).to_be_visible()

    page.get_by_role("link", name="Publish v1").click()
    page.get_by_role("button", name="Publish v1 (replaces v2)").click()
    expect(page.locator(".toast", has_text="v1 is live")).to_be_visible()
    assert live_number(api, agent) == 1

    page.goto(page.url.split("/versions")[0] + "/versions")
    page.click("#restore-2")
    page.get_by_role("button", name="Restore and publish (replaces v1)").click()
    expect(page.locator(".toast", has_text="v3 is live, restored from v2")).to_be_visible()
    assert live_number(api, agent) == 3
    assert visitor.console == []
