"""Text of the editor that was not saved, and is offered again."""

import re

from playwright.sync_api import expect

from tests.browser.agents.editor_page import append_text, instructions, open_section, stored
from tests.served import PASSWORD


def test_unsaved_text_of_a_closed_tab_can_be_restored(visit, fresh):
    visitor = visit()
    unchanged = visitor.goto(f"/agents/{fresh}")
    visitor.page = visitor.open()
    page = visitor.goto(f"/agents/{fresh}")
    append_text(page, " Not saved yet.")
    expect(page.get_by_text("Unsaved", exact=True)).to_be_visible()
    page.close()
    unchanged.evaluate("dispatchEvent(new Event('pagehide'))")

    visitor.page = visitor.open()
    page = visitor.goto(f"/agents/{fresh}")
    banner = page.locator("[data-recovery]")
    expect(banner).to_have_text(re.compile(r"Unsaved changes from \d\d:\d\d( [AP]M)?\."))
    page.evaluate("scrollTo(0, document.body.scrollHeight)")  # as after a reload of a page that was scrolled
    expect(banner).to_be_in_viewport()
    append_text(page, " Later.")  # without a decision about the earlier text
    expect(page.get_by_text("Unsaved", exact=True)).to_be_visible()
    page.close()

    visitor.page = visitor.open()
    page = visitor.goto(f"/agents/{fresh}")
    page.get_by_role("button", name="Discard").click()
    page = visitor.goto(f"/agents/{fresh}")
    page.get_by_role("button", name="Restore").click()
    expect(instructions(page)).to_contain_text("Not saved yet.")
    expect(instructions(page)).not_to_contain_text("Later.")


def test_unsaved_text_outlives_an_expired_session(visit, fresh, api):
    visitor = visit()
    page = visitor.goto(f"/agents/{fresh}")
    append_text(page, " Kept.")
    visitor.context.clear_cookies(name="sessionid")
    page.keyboard.press("Control+s")

    expect(page.locator(".toast-fault")).to_contain_text("Your text is stored")
    with visitor.context.expect_page() as opened:
        page.get_by_role("link", name="Sign in in a new tab").click()
    tab = opened.value
    tab.fill("[name=username]", "publisher")
    tab.fill("[name=password]", PASSWORD)
    tab.keyboard.press("Enter")
    tab.wait_for_url(lambda url: "/sign-in" not in url)
    page.bring_to_front()
    page.get_by_role("button", name="Save draft").click()

    expect(page.locator("#agent-title")).to_contain_text("Draft ahead by 1")
    assert stored(api, fresh)["instructions"].endswith("Kept.")


def test_rows_of_unsaved_changes_are_restored(visit, fresh, api):
    visitor = visit()
    page = visitor.goto(f"/agents/{fresh}")
    open_section(page, "metadata")
    page.get_by_role("button", name="Add a row").click()
    page.keyboard.type("floor")
    page.locator("[name=metadata-row-kind]").select_option("number")
    page.locator("[name=metadata-row-value]").fill("4")
    open_section(page, "processors")
    page.locator("#input_processors-picker summary").click()
    page.locator("#input_processors-options [data-option=mask-email]").click()
    expect(page.get_by_text("Unsaved", exact=True)).to_be_visible()
    page.close()

    visitor.page = visitor.open()
    page = visitor.goto(f"/agents/{fresh}")
    cookies = visitor.context.cookies()
    visitor.context.clear_cookies(name="sessionid")
    page.get_by_role("button", name="Restore").click()
    expect(page.locator(".toast-fault")).to_contain_text("you have been signed out")
    visitor.context.add_cookies(cookies)
    page.get_by_role("button", name="Restore").click()
    expect(page.locator("#input_processors-picker [data-row]")).to_have_count(1)
    expect(page.locator("[name=metadata-row-name]")).to_have_value("floor")
    page.keyboard.press("Control+s")

    expect(page.locator(".toast", has_text="Draft v2 saved")).to_be_visible()
    assert stored(api, fresh)["metadata"] == {"floor": 4}
    assert stored(api, fresh)["inputProcessors"] == [{"key": "mask-email"}]


def test_rows_are_restored_with_another_csrf_token(visit, fresh):
    visitor = visit(own_session=True)
    page = visitor.goto(f"/agents/{fresh}")
    open_section(page, "metadata")
    page.get_by_role("button", name="Add a row").click()
    page.keyboard.type("floor")
    expect(page.get_by_text("Unsaved", exact=True)).to_be_visible()
    page.close()
    visitor.page = visitor.open()
    page = visitor.goto(f"/agents/{fresh}")
    visitor.context.clear_cookies(name="csrftoken")
    visitor.open().goto(f"{visitor.base_url}/")  # with a new token, as after signing in again

    page.get_by_role("button", name="Restore").click()

    expect(page.locator("[name=metadata-row-name]")).to_have_value("floor")
    expect(page.locator(".toast-fault")).to_have_count(0)


def test_text_that_the_browser_fills_in_again_is_not_offered_too(visit, fresh, api):
    visitor = visit()
    page = visitor.goto(f"/agents/{fresh}")
    page.get_by_role("textbox", name="Description").fill("Not saved yet.")
    page.get_by_role("link", name="Playground", exact=True).click()
    page.wait_for_url("**/try?*")

    page.go_back()

    expect(page.get_by_role("textbox", name="Description")).to_have_value("Not saved yet.")
    expect(page.get_by_text("Unsaved", exact=True)).to_be_visible()
    expect(page.locator("[data-recovery]")).to_be_hidden()
    page.keyboard.press("Control+s")
    expect(page.locator(".toast", has_text="Draft v2 saved")).to_be_visible()
    page = visitor.goto(f"/agents/{fresh}")
    expect(page.locator("[data-recovery]")).to_be_hidden()
