"""The command palette by keyboard and mouse."""

import uuid

from playwright.sync_api import expect

from tests.browser.conftest import create_agent
from tests.browser.site.test_accessibility import find_violations


def test_the_palette_leads_to_agents_tabs_and_pages(visit, api, axe):
    word = f"w{uuid.uuid4().hex[:8]}"
    create_agent(api, f"{word}-one", name=f"Night porter {word}")
    visitor = visit()
    page = visitor.goto("/account/keys")
    field, current = page.get_by_role("combobox", name="Go to"), page.locator("#palette [aria-selected=true]")

    page.keyboard.press("Control+k")
    expect(field).to_be_focused()
    expect(current).to_have_count(1)
    first = current.get_attribute("id")
    assert field.get_attribute("aria-activedescendant") == first
    page.keyboard.press("ArrowDown")
    assert current.get_attribute("id") == field.get_attribute("aria-activedescendant") != first
    assert find_violations(page, axe) == []
    page.keyboard.press("Escape")
    expect(field).to_be_hidden()

    page.get_by_role("link", name="Go to").click()
    page.keyboard.type(f"{word} play")
    expect(page.locator("#palette-status")).to_have_text("1 result")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/agents/{word}-one/try")

    page.keyboard.press("Control+k")
    expect(page.get_by_role("group", name=f"Night porter {word}").get_by_role("option")).to_have_count(8)
    page.keyboard.type("api keys")
    page.keyboard.press("Enter")  # before the server has answered
    page.wait_for_url("**/account/keys")

    page.keyboard.press("Control+k")
    page.keyboard.type("nothing has these words")
    expect(page.get_by_text("Nothing matches")).to_be_visible()
    assert find_violations(page, axe) == []
    page.mouse.click(5, 5)
    expect(field).to_be_hidden()
    assert visitor.console == []


def test_the_palette_fits_on_a_phone_and_works_without_scripts(visit, api):
    word = f"w{uuid.uuid4().hex[:8]}"
    create_agent(api, f"{word}-one", name=f"A very long name of an agent {word} " * 4)
    visitor = visit()
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    page = visitor.goto("/")
    page.locator(".primary-nav summary").click()
    page.get_by_role("link", name="Runs", exact=True).click()
    page.wait_for_url("**/runs")
    page.locator(".topbar-tools summary").click()
    page.get_by_role("link", name="Go to").click()
    page.keyboard.type(word)
    expect(page.locator("#palette-status")).to_have_text("1 result")
    box = page.locator("#palette").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    assert page.evaluate("document.documentElement.scrollWidth") <= 390

    page = visit(java_script_enabled=False).goto("/")
    page.get_by_role("link", name="Go to").first.click()
    page.get_by_label("Agent or page").fill(f"{word} usage")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("link", name="Usage").click()
    page.wait_for_url(f"**/agents/{word}-one/usage")


def test_a_key_before_htmx_has_started_opens_the_palette(visit):
    visitor = visit()
    visitor.page.add_init_script("const later = setTimeout; window.setTimeout = (run, ms) => later(run, ms ?? 2000);")
    visitor.page.goto(f"{visitor.base_url}/account/keys")
    visitor.page.keyboard.press("Control+k")
    expect(visitor.page.locator("#palette [aria-selected=true]")).to_have_count(1)


def test_enter_does_not_open_the_results_of_an_earlier_search(visit):
    page = visit().goto("/")
    page.evaluate("""() => {
        const field = document.querySelector("#palette [role=combobox]");
        addEventListener("htmx:before:swap", () => {  // typed while the answer to the blank search arrives
            field.value = "api keys";
            field.dispatchEvent(new Event("input", { bubbles: true }));
        }, { once: true });
        addEventListener("htmx:finally:request", () => field.form.requestSubmit(), { once: true });
    }""")
    page.keyboard.press("Control+k")
    page.wait_for_url("**/account/keys")
