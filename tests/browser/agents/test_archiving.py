"""Archiving an agent, deleting it and restoring it, in a browser."""

import uuid

from playwright.sync_api import expect

from tests.browser.conftest import create_agent


def test_an_agent_is_archived_deleted_and_restored(visit, api):
    agent_id = f"porter-{uuid.uuid4().hex[:8]}"
    create_agent(api, agent_id, name="Night porter")
    create_agent(api, f"{agent_id}-manager", agents=[agent_id])
    visitor = visit()
    page = visitor.goto(f"/agents/{agent_id}")
    page.locator("summary[title=More]").click()
    page.click("#archive")
    page.get_by_role("button", name="Archive Night porter").click()
    expect(page.locator("dialog[open] .reason")).to_contain_text("1 error: ")
    page.locator("dialog[open]").get_by_role("checkbox").check()
    page.get_by_role("button", name="Archive Night porter").click()
    expect(page.locator("#notices")).to_contain_text("Unarchive it to edit, publish or run it.")
    page.locator("#notices").get_by_role("button", name="Unarchive").click()
    expect(page.get_by_role("button", name="Save draft")).to_be_visible()

    page.locator("summary[title=More]").click()
    page.click("#delete")
    page.get_by_label("Type the name to confirm").fill("Night porter")
    page.locator("dialog[open]").get_by_role("checkbox").check()
    page.get_by_role("button", name="Delete Night porter").click()
    expect(page.locator(".toast", has_text="was moved to the trash")).to_be_visible()

    page.get_by_role("link", name="Trash").click()
    row = page.locator("tr", has_text=agent_id)
    row.get_by_role("link", name="Restore").click()
    page.get_by_role("button", name="Restore", exact=True).click()
    page.wait_for_url(f"**/agents/{agent_id}")
    expect(page.locator("#agent-title")).to_contain_text("Live v1")
    assert visitor.errors == []
