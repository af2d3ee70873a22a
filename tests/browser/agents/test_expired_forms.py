"""Forms whose CSRF token or session is gone: nothing that was typed is lost, and the page says what to do."""

import uuid
from typing import Any

from playwright.sync_api import expect

from tests.browser.agents.test_editor import append_text, instructions, stored
from tests.served import PASSWORD


def test_a_save_without_the_cookie_is_accepted_when_it_is_repeated(visit: Any, fresh: str, api: Any):
    visitor = visit(own_session=True)
    page = visitor.goto(f"/agents/{fresh}")
    append_text(page, " Smile.")
    visitor.context.clear_cookies(name="csrftoken")

    page.get_by_role("button", name="Save draft").click()

    toast = page.locator(".toast-fault")
    expect(toast).to_contain_text("This page was open for too long. Nothing was changed. Try again.")
    expect(toast).not_to_contain_text("role")
    expect(instructions(page)).to_contain_text("Smile.")
    page.get_by_role("button", name="Save draft").click()
    expect(page.locator(".toast")).to_contain_text("Draft v2 saved")
    assert stored(api, fresh)["instructions"].endswith(" Smile.")


def test_a_save_without_any_cookie_leads_to_the_sign_in(visit: Any, fresh: str):
    visitor = visit(own_session=True)
    page = visitor.goto(f"/agents/{fresh}")
    append_text(page, " Smile.")
    visitor.context.clear_cookies()

    page.get_by_role("button", name="Save draft").click()

    expect(page.locator(".toast-fault")).to_contain_text("You have been signed out.")
    expect(page.get_by_role("link", name="Sign in in a new tab")).to_be_visible()
    page.get_by_role("button", name="Dismiss").click()
    # The bell asks for its number again, and does not report it again.
    with page.expect_response(lambda response: "/sign-in" in response.url):
        page.evaluate("document.querySelector('#approval-bell').dispatchEvent(new CustomEvent('every'))")
    page.wait_for_timeout(100)
    expect(page.locator(".toast-fault")).to_have_count(0)
    visitor.page = visitor.open()
    visitor.sign_in("publisher")
    page = visitor.goto(f"/agents/{fresh}")
    page.get_by_role("button", name="Restore").click()
    expect(instructions(page)).to_contain_text("Smile.")


def test_a_new_agent_without_the_cookie_is_not_lost(visit: Any):
    visitor = visit(own_session=True)
    page = visitor.goto("/new-agent")
    name = f"Late {uuid.uuid4().hex[:6]}"
    page.get_by_label("Name", exact=True).fill(name)
    append_text(page, "Find me.")
    visitor.context.clear_cookies(name="csrftoken")

    page.get_by_role("button", name="Create and publish v1").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("This page was open for too long")
    expect(page.get_by_text("Find me.")).to_be_visible()
    page.get_by_role("link", name="Open the page again").click()
    page.get_by_role("button", name="Restore").click()
    expect(page.get_by_label("Name", exact=True)).to_have_value(name)
    expect(instructions(page)).to_contain_text("Find me.")


def test_an_agent_that_was_deleted_meanwhile_is_reported_once(visit: Any, fresh: str, api: Any):
    page = visit().goto(f"/agents/{fresh}")
    assert api.delete(f"/api/stored/agents/{fresh}").is_success
    beat = "document.querySelector('#presence').dispatchEvent(new CustomEvent('every'))"
    page.evaluate(beat)
    expect(page.locator(".toast-fault")).to_contain_text("This no longer exists. Copy what you typed")
    page.get_by_role("button", name="Dismiss").click()
    requests: list[str] = []
    page.on("request", lambda request: request.url.endswith("/presence") and requests.append(request.url))

    page.evaluate(beat)

    page.wait_for_timeout(300)
    assert requests == []
    expect(page.locator(".toast-fault")).to_have_count(0)


def test_changes_are_reviewed_after_signing_in_again_in_another_tab(visit: Any, fresh: str):
    visitor = visit(own_session=True)
    page = visitor.goto(f"/agents/{fresh}")
    append_text(page, " Smile.")
    tab = visitor.open()
    tab.goto(f"{visitor.base_url}/")
    tab.locator("summary", has_text="Account of").click()
    tab.get_by_role("button", name="Sign out").click()
    tab.get_by_label("Username").fill("publisher")
    tab.get_by_label("Password").fill(PASSWORD)
    tab.keyboard.press("Enter")  # changes the CSRF token
    tab.wait_for_url(lambda url: "/sign-in" not in url)

    page.get_by_role("button", name="Review changes").click()

    expect(page.locator("#review-dialog")).to_contain_text("Smile.")
    expect(page.locator(".toast-fault")).to_have_count(0)
