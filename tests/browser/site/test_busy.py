"""Controls whose request takes long: they show it, and cannot be pressed again."""

from typing import Any

from playwright.sync_api import Page, Route, expect


def delay(page: Page, url: str) -> list[Route]:
    """Delay the POST requests to a URL. Return the list that they are added to."""
    waiting: list[Route] = []
    page.route(url, lambda route: waiting.append(route) if route.request.method == "POST" else route.continue_())
    return waiting


def test_a_button_of_htmx_is_busy_until_the_response(visit: Any, agent: str):
    page = visit().goto(f"/agents/{agent}")
    page.get_by_role("textbox", name="Instructions").press("Control+End")
    page.keyboard.type(" Smile.")
    waiting = delay(page, f"**/agents/{agent}")
    button = page.get_by_role("button", name="Save draft")
    width = button.bounding_box()["width"]

    button.click()

    busy = page.get_by_role("button", name="Saving…")
    expect(busy).to_have_attribute("aria-busy", "true")
    expect(page.locator("[data-busy-status]")).to_have_text("Saving…")
    assert busy.bounding_box()["width"] >= width
    busy.click(force=True)
    page.keyboard.press("Control+s")
    assert len(waiting) == 1

    waiting[0].continue_()
    expect(page.locator(".toast")).to_contain_text("Draft v4 saved")
    expect(button).to_be_visible()
    expect(button).not_to_have_attribute("aria-busy", "true")
    expect(page.locator("[data-busy-status]")).to_be_empty()
    assert len(waiting) == 1


def test_a_link_that_opens_a_dialog_is_busy_until_it_opens(visit: Any, agent: str):
    page = visit().goto(f"/agents/{agent}/versions")
    waiting: list[Route] = []
    page.route("**/activate", lambda route: waiting.append(route))
    link = page.locator("#activate-2")
    link.click(no_wait_after=True)

    expect(link).to_have_text("Publishing…")
    link.click(force=True)
    assert len(waiting) == 1
    waiting[0].continue_()

    expect(page.locator("dialog[open]")).to_contain_text("Publish v2?")
    expect(page.locator("#activate-2")).to_have_text("Publish")


COUNT_SUBMITS = """() => {
    window.submits = 0;
    window.addEventListener("submit", (event) => { window.submits += 1; event.preventDefault(); });
}"""


def test_a_form_without_htmx_is_busy_until_the_next_page(visit: Any):
    page = visit().goto("/new-agent")
    page.get_by_label("Name", exact=True).fill("Never sent")
    page.evaluate(COUNT_SUBMITS)  # as if the response never came
    button = page.get_by_role("button", name="Create and publish v1")

    button.click()

    button = page.get_by_role("button", name="Creating…")
    expect(button).to_have_attribute("aria-busy", "true")
    button.click(force=True)
    page.keyboard.press("Control+s")
    assert page.evaluate("submits") == 1


def test_a_search_is_busy_from_the_moment_that_it_leaves_the_page(visit: Any):
    visitor = visit(own_context=True)
    visitor.page.clock.install()
    page = visitor.goto("/datasets")
    page.evaluate(COUNT_SUBMITS)
    page.get_by_role("searchbox", name="Search datasets").fill("exam")
    button = page.locator("main").get_by_role("button", name="Search", exact=True)

    button.click()
    page.clock.run_for(1000)
    expect(button).not_to_have_attribute("aria-busy", "true")  # it may only lead to a fragment of this page
    page.evaluate("window.dispatchEvent(new Event('beforeunload', {cancelable: true}))")

    page.clock.run_for(1000)
    button = page.get_by_role("button", name="Searching…")
    expect(button).to_have_attribute("aria-busy", "true")
    button.click(force=True)
    assert page.evaluate("submits") == 1
