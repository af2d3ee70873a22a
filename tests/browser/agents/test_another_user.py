"""Pages that stay open while another user signs in in the same browser: they change nothing as that user."""

from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.agents.test_editor import append_text, instructions, stored
from tests.browser.conftest import Visitor
from tests.browser.site.test_accessibility_of_data import post
from tests.served import PASSWORD


def sign_in_elsewhere(visitor: Visitor, name: str) -> Page:
    """Sign another user in, in another tab."""
    tab = visitor.open()
    tab.goto(f"{visitor.base_url}/")
    tab.locator("summary", has_text="Account of").click()
    tab.get_by_role("button", name="Sign out").click()
    tab.get_by_label("Username").fill(name)
    tab.get_by_label("Password").fill(PASSWORD)
    tab.keyboard.press("Enter")
    tab.wait_for_url(lambda url: "/sign-in" not in url)
    return tab


def test_an_open_editor_does_not_save_as_another_user(visit: Any, fresh: str, api: httpx.Client):
    visitor = visit("editor", own_session=True)
    page = visitor.goto(f"/agents/{fresh}")
    append_text(page, " Smile.")
    sign_in_elsewhere(visitor, "publisher")

    page.get_by_role("button", name="Save draft").click()

    expect(page.locator(".toast-fault")).to_contain_text("publisher has signed in in this browser")
    expect(instructions(page)).to_contain_text("Smile.")
    assert "Smile." not in stored(api, fresh)["instructions"]

    sign_in_elsewhere(visitor, "editor")
    page.get_by_role("button", name="Save draft").click()
    expect(page.locator(".toast")).to_contain_text("Draft v2 saved")


@pytest.mark.parametrize("scripts", [True, False])
def test_an_open_form_is_not_sent_as_another_user(visit: Any, api: httpx.Client, scripts: bool):
    base = f"manual-{scripts}".lower()
    post(api, "/knowledge", {"id": base, "name": "Manual", "embedder": "local/multilingual"})
    visitor = visit("publisher", own_session=True, java_script_enabled=scripts)
    page = visitor.goto(f"/knowledge/{base}/settings")
    page.get_by_label("Description").fill("What the guests ask.")
    sign_in_elsewhere(visitor, "root")

    page.get_by_role("button", name="Save").click()

    title = "Another user has signed in" if scripts else "This page was open for too long"
    expect(page.get_by_role("heading", level=1)).to_have_text(title)
    expect(page.get_by_text("What the guests ask.")).to_be_visible()
    assert not api.get(f"/api/knowledge/{base}").json()["description"]


def test_an_open_page_no_longer_reports_that_its_user_is_there(visit: Any, fresh: str):
    visitor = visit("editor", own_session=True)
    page = visitor.goto(f"/agents/{fresh}")
    sign_in_elsewhere(visitor, "publisher")
    beat = "document.querySelector('#presence').dispatchEvent(new CustomEvent('every'))"

    page.evaluate(beat)

    expect(page.locator(".toast-fault")).to_contain_text("publisher has signed in in this browser")
    page.get_by_role("button", name="Dismiss").click()
    page.evaluate(beat)
    page.wait_for_timeout(300)
    expect(page.locator(".toast-fault")).to_have_count(0)
