"""Accessibility of runs and the playground in both themes, checked by axe-core."""

from typing import Any

from playwright.sync_api import expect

from tests.browser.conftest import patch_agent
from tests.browser.site.test_accessibility import find_violations

SLOW = 60_000  # the first run in a process imports the model libraries


def test_pages_without_runs_break_no_rule(visit: Any, agent: str, axe: str):
    visitor = visit()
    addresses = ["/runs?status=suspended", f"/agents/{agent}/try", f"/agents/{agent}/try?columns=v1,v99,unsaved"]

    violations = {address: find_violations(visitor.goto(address), axe) for address in addresses}

    assert {address: faults for address, faults in violations.items() if faults} == {}


def test_a_run_breaks_no_rule_from_input_to_run_page(visit: Any, agent: str, api: Any, axe: str):
    patch_agent(
        api,
        agent,
        instructions="Greet {{guest}} in {{city}}.",
        tools=["word-count", "gone"],
        model={"provider": "demo", "name": "storyteller", "delay": 0.4},
        requestContextSchema={"properties": {"tone": {"enum": ["calm", "loud"], "description": "How to write."}}},
    )
    visitor = visit()
    violations = {}
    page = visitor.goto(f"/agents/{agent}/try?columns=live,v1")
    page.get_by_label("guest").fill("Ann")
    page.get_by_label("Message").fill("Tell me of the sea.")
    page.keyboard.press("Control+Enter")
    expect(page.locator("[aria-busy] .answer-text").first).to_be_visible(timeout=SLOW)
    violations["answering"] = find_violations(page, axe)
    page.get_by_role("button", name="Stop").first.click()
    page.get_by_label("Message").fill('use word-count {"text": "one two"}')
    page.keyboard.press("Control+Enter")
    expect(page.locator("details.call")).to_have_attribute("data-state", "done", timeout=SLOW)
    expect(page.locator("[aria-busy]")).to_have_count(0, timeout=SLOW)
    page.get_by_role("button", name="Mark differences").click()
    expect(page.locator("mark").first).to_be_visible()
    page.locator("details.call summary").click()
    page.locator("#inputs summary").click()
    violations["answered"] = find_violations(page, axe)
    page.get_by_role("link", name="Open the run").first.click()
    page.locator("#configuration summary").click()
    page.locator("#sent-instructions summary").click()
    violations["run"] = find_violations(page, axe)
    page = visitor.goto("/runs")
    page.locator(".filter-bar summary").click()
    violations["runs"] = find_violations(page, axe)
    page = visitor.goto(f"/agents/{agent}/usage")
    expect(page.locator(".usage-chart")).to_have_count(6)
    page.get_by_role("heading", name="By day and version").click()
    violations["usage"] = find_violations(page, axe)

    assert {name: faults for name, faults in violations.items() if faults} == {}
