"""The editor on a slow line, and on one that is lost."""

import uuid

from playwright.sync_api import expect

from tests.browser.agents.editor_page import append_text, instructions, stored
from tests.browser.site.test_busy import delay


def test_a_slow_save_in_the_review_says_so_and_loses_nothing(visit, fresh, api):
    visitor = visit()
    page = visitor.goto(f"/agents/{fresh}")
    append_text(page, " Smile.")
    page.get_by_role("button", name="Review changes").click()
    dialog = page.locator("dialog[open]")
    dialog.get_by_label("Message").fill("Friendlier")
    waiting = delay(page, f"**/agents/{fresh}")

    dialog.get_by_role("button", name="Publish v2").click()

    expect(dialog.get_by_role("button", name="Publishing…")).to_have_attribute("aria-busy", "true")
    expect(page.locator("[data-busy-status]")).to_have_text("Publishing…")
    dialog.get_by_role("button", name="Save draft").click()  # another button of the same form
    page.keyboard.press("Control+s")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    append_text(page, " Wave.")
    assert len(waiting) == 1
    waiting[0].continue_()

    expect(page.locator("#agent-title")).to_contain_text("Live v2")
    expect(page.get_by_text("Unsaved", exact=True)).to_be_visible()
    expect(instructions(page)).to_contain_text("Smile. Wave.")
    assert stored(api, fresh)["instructions"].endswith(" Smile.")
    assert visitor.console == []


def test_what_is_typed_while_more_inputs_are_rendered_stays(visit, fresh):
    page = visit().goto(f"/agents/{fresh}#variants")
    variants = page.locator("#variants")
    variants.get_by_text("Add a model variant").click()
    new = variants.locator(".variant-new[open]")
    new.get_by_label("Provider").fill("demo")
    new.get_by_label("Model", exact=True).fill("echo")
    waiting = delay(page, "**/fields")

    variants.get_by_role("button", name="More inputs for variants and conditions").click()
    wait_for_requests(page, waiting, 1)
    variants.get_by_label("Context keys").fill("tier")
    waiting[0].continue_()
    wait_for_requests(page, waiting, 2)
    waiting[1].continue_()

    expect(variants.get_by_text("Variant 1", exact=True)).to_be_visible()
    expect(variants.get_by_label("Context keys")).to_have_value("tier")
    expect(page.get_by_text("Unsaved", exact=True)).to_be_visible()


def test_rows_cannot_be_changed_until_those_of_restored_text_are_there(visit, fresh):
    visitor = visit()
    page = visitor.goto(f"/agents/{fresh}")
    append_text(page, " Smile.")
    expect(page.get_by_text("Unsaved", exact=True)).to_be_visible()  # and stored
    visitor.page = visitor.open()
    page = visitor.goto(f"/agents/{fresh}#variants")
    variants = page.locator("#variants")
    variants.get_by_text("Add a model variant").click()
    provider = variants.locator(".variant-new[open]").get_by_label("Provider")
    waiting = delay(page, "**/fields")

    page.get_by_role("button", name="Restore").click()
    wait_for_requests(page, waiting, 1)
    provider.focus()
    page.keyboard.type("demo")
    expect(provider).to_have_value("")
    waiting[0].continue_()

    expect(provider).to_have_count(0)  # the new rows are closed
    expect(instructions(page)).to_contain_text("Smile.")
    variants.get_by_text("Add a model variant").click()
    provider.fill("demo")
    expect(provider).to_have_value("demo")


def test_a_lost_line_is_reported_and_the_text_is_saved_later(visit, fresh, api):
    page = visit().goto(f"/agents/{fresh}")
    append_text(page, " Smile.")
    page.get_by_role("button", name="Review changes").click()
    dialog = page.locator("dialog[open]")
    dialog.get_by_label("Message").fill("Friendlier")
    page.context.set_offline(True)

    dialog.get_by_role("button", name="Save draft").click()

    expect(page.locator(".toast-fault")).to_contain_text("The server cannot be reached.")
    page.get_by_role("button", name="Dismiss").click()
    expect(page.locator(".toast-fault")).to_have_count(0)
    save = dialog.get_by_role("button", name="Save draft")
    expect(save).not_to_have_attribute("aria-busy", "true")
    expect(dialog.get_by_label("Message")).to_have_value("Friendlier")
    page.context.set_offline(False)
    save.click()

    expect(page.locator(".toast")).to_contain_text("Draft v2 saved")
    expect(page.locator(".toast-fault")).to_have_count(0)
    assert stored(api, fresh)["instructions"].endswith(" Smile.")


def test_a_message_that_was_not_sent_stays_in_the_playground(visit, fresh):
    page = visit().goto(f"/agents/{fresh}/try")
    page.get_by_label("Message").fill("Hello")
    page.context.set_offline(True)

    page.keyboard.press("Control+Enter")

    expect(page.locator(".toast-fault")).to_have_text(
        "The server cannot be reached. What you typed stays on this page."
    )
    expect(page.get_by_label("Message")).to_have_value("Hello")
    page.context.set_offline(False)
    page.keyboard.press("Control+Enter")
    expect(page.locator("[data-answer]")).to_contain_text("You said: Hello")
    expect(page.locator(".toast-fault")).to_have_count(0)


def test_an_answer_whose_end_was_lost_is_fetched_again(visit, fresh):
    page = visit().goto(f"/agents/{fresh}/try")
    requests = []

    def hold(route):
        requests.append(route)

    page.route("**/runs/*/answer", hold)
    page.get_by_label("Message").fill("Hello")

    page.keyboard.press("Control+Enter")

    wait_for_requests(page, requests, 1)
    requests[0].abort()
    # Another request of the page may remove the toast at once, as the server answers it.
    expect(page.locator("[data-answer] [data-trouble]")).to_have_text("Reconnecting …")
    wait_for_requests(page, requests, 2)
    requests[1].continue_()
    expect(page.get_by_role("link", name="Open the run")).to_be_visible()
    expect(page.locator(".toast-fault")).to_have_count(0)


def wait_for_requests(page, requests, number):
    """Wait until the page has sent so many requests, at most 20 seconds."""
    for _ in range(200):
        if len(requests) >= number:
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"{len(requests)} of {number} requests were sent.")


def test_text_of_a_new_agent_that_did_not_arrive_is_offered_again(visit):
    visitor = visit()
    page = visitor.goto("/new-agent")
    name = f"Lost {uuid.uuid4().hex[:6]}"
    page.get_by_label("Name", exact=True).fill(name)
    append_text(page, "Find me.")
    page.context.set_offline(True)
    page.get_by_role("button", name="Create and publish v1").click()
    page.wait_for_url("chrome-error://**")

    page.context.set_offline(False)
    page = visitor.goto("/new-agent")
    expect(page.locator("[data-recovery]")).to_contain_text("Unsaved changes from")
    page.get_by_role("button", name="Restore").click()

    expect(page.get_by_label("Name", exact=True)).to_have_value(name)
    expect(instructions(page)).to_contain_text("Find me.")
