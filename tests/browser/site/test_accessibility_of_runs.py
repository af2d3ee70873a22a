"""No page of a run, and nothing of Try it, breaks a rule of axe-core, in either theme."""

from typing import Any

from playwright.sync_api import expect

from tests.browser.conftest import patch
from tests.browser.site.test_accessibility import broken

SLOW = 60_000  # the first run of a process loads what talks to models


def test_pages_without_runs_break_no_rule(visit: Any, agent: str, axe: str):
    visitor = visit()
    addresses = ["/runs?status=suspended", f"/agents/{agent}/try", f"/agents/{agent}/try?columns=v1,v99,unsaved"]

    found = {address: broken(visitor.goto(address), axe) for address in addresses}

    assert {address: faults for address, faults in found.items() if faults} == {}


def test_a_run_breaks_no_rule_from_input_to_run_page(visit: Any, agent: str, api: Any, axe: str):
    patch(api, agent, tools=["word-count", "gone"], model={"provider": "demo", "name": "storyteller", "delay": 0.4})
    visitor = visit()
    found = {}
    page = visitor.goto(f"/agents/{agent}/try?columns=live,v1")
    page.get_by_label("Message").fill("Tell me of the sea.")
    page.keyboard.press("Control+Enter")
    expect(page.locator("[aria-busy] .answer-text").first).to_be_visible(timeout=SLOW)
    found["answering"] = broken(page, axe)
    page.get_by_role("button", name="Stop").first.click()
    page.get_by_label("Message").fill('use word-count {"text": "one two"}')
    page.keyboard.press("Control+Enter")
    expect(page.locator("details.call")).to_have_attribute("data-state", "done", timeout=SLOW)
    expect(page.locator("[aria-busy]")).to_have_count(0, timeout=SLOW)
    page.locator("details.call summary").click()
    page.locator("#inputs summary").click()
    found["answered"] = broken(page, axe)
    page.get_by_role("link", name="Open the run").first.click()
    page.locator("#configuration summary").click()
    found["run"] = broken(page, axe)
    page = visitor.goto("/runs")
    page.locator(".filter-bar summary").click()
    found["runs"] = broken(page, axe)

    assert {name: faults for name, faults in found.items() if faults} == {}
