"""Calls that wait for people, in a browser: with the keyboard, by two people at once, and in the playground."""

import json
import re
import uuid
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import create_agent
from tests.browser.site.conftest import axe
from tests.browser.site.test_accessibility import find_violations

__all__ = ["axe"]

REFUND = 'issue-refund {"order": "%s", "amount": 180}'


@pytest.fixture
def desk(api: Any) -> str:
    """Return the id of an agent that refunds orders and arranges deliveries."""
    agent_id = f"desk-{uuid.uuid4().hex[:8]}"
    create_agent(api, agent_id, name="Refund desk", tools=["issue-refund", "arrange-delivery"])
    return agent_id


def start(api: Any, agent_id: str, message: str) -> str:
    """Start a run that suspends itself. Return its ID."""
    answer = api.post(f"/api/agents/{agent_id}/generate", json={"messages": message}, timeout=60).json()
    assert answer["finishReason"] == "suspended", answer
    return str(answer["runId"])


def card(page: Any, order: str) -> Any:
    return page.locator("[data-approval]").filter(has_text=order).first


def test_calls_are_decided_with_the_keyboard(visit: Any, api: Any, desk: str, axe: str):
    orders = [f"K-{uuid.uuid4().hex[:6]}" for _ in range(3)]
    for order in orders[:2]:
        start(api, desk, REFUND % order)
    start(api, desk, f'arrange-delivery {{"order": "{orders[2]}"}}')
    create_agent(api, f"{desk}-2", tools=["issue-refund"])  # so that there is a choice to filter by
    start(api, f"{desk}-2", REFUND % "other")
    visitor = visit()
    page = visitor.goto("/approvals")
    page.set_viewport_size({"width": 390, "height": 844})
    page.locator(".filter-bar summary", has_text="Filter").click()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.set_viewport_size({"width": 1280, "height": 900})
    page = visitor.goto(f"/approvals?agent={desk}")
    violations = find_violations(page, axe)
    waiting = page.locator("#approval-tabs .count").first
    count = int(waiting.inner_text())
    page.keyboard.press("n")
    expect(card(page, orders[0])).to_be_focused()

    page.keyboard.press("e")
    expect(page.get_by_label("Order")).to_be_focused()
    page.get_by_label("Amount").fill("20")
    violations += find_violations(page, axe)
    page.keyboard.press("Control+s")

    expect(card(page, orders[0])).to_contain_text("Approved by publisher")
    expect(page.locator(".toast")).to_contain_text("Issue a refund: approved. The run continues.")
    expect(waiting).to_have_text(str(count - 1))
    page.keyboard.press("n")
    expect(card(page, orders[1])).to_be_focused()
    page.keyboard.press("d")
    expect(page.get_by_label("Reason")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_label("Reason")).to_have_count(0)
    page.keyboard.press("d")
    expect(page.get_by_label("Reason")).to_be_focused()
    page.keyboard.type("No receipt.")
    page.keyboard.press("Escape")  # keeps typed text
    page.keyboard.press("Control+s")
    expect(card(page, orders[1])).to_contain_text("No receipt.")
    card(page, orders[2]).get_by_label("Day").select_option("Friday")
    card(page, orders[2]).get_by_role("button", name="Send the answer").click()
    expect(card(page, orders[2])).to_contain_text("Answered by publisher")
    page.goto(f"{visitor.base_url}/approvals?tab=decided&agent={desk}")
    expect(page.locator("tbody tr")).to_have_count(3)
    violations += find_violations(page, axe)
    assert violations == []
    assert visitor.console == []


def test_of_two_people_the_second_reads_who_was_faster(visit: Any, api: Any, desk: str):
    order = f"R-{uuid.uuid4().hex[:6]}"
    start(api, desk, REFUND % order)
    first, second = (visit(name).goto(f"/approvals?agent={desk}") for name in ("publisher", "root"))

    card(first, order).get_by_role("button", name="Approve").click()
    expect(card(first, order)).to_contain_text("Approved by publisher")
    card(second, order).get_by_role("button", name="Approve").click()

    expect(card(second, order)).to_contain_text("publisher was faster and chose: approved.")
    expect(second.get_by_role("button", name="Approve")).to_have_count(0)


def test_the_playground_streams_on_after_the_decision(visit: Any, desk: str, ask: Any, axe: str):
    visitor = visit()
    page = ask(visitor, desk, REFUND % "P-1", columns="live,v1")
    first, second = page.locator(".trial").all()
    approve = first.get_by_role("button", name="Approve")
    expect(approve).to_be_visible()
    second.get_by_role("link", name="Decline").click()
    second.get_by_label("Reason").fill("No receipt.")
    page.keyboard.press("Control+Enter")  # runs nothing from another form
    expect(page.locator("#approval-link")).to_be_visible()
    violations = find_violations(page, axe)

    approve.click()

    expect(first.locator("[data-answer] .answer-text")).to_contain_text(
        "issue-refund says Refunded 180.00 for order P-1"
    )
    expect(first.locator(".answer-foot")).to_contain_text(re.compile(r"\d+ tokens"))
    expect(second.get_by_label("Reason")).to_have_value("No receipt.")
    expect(page.locator(".sent-message")).to_have_count(2)
    first.get_by_role("link", name="Open the run").click()
    expect(page.locator(".span-person")).to_contain_text("Approved by publisher")
    violations += find_violations(page, axe)
    assert violations == []
    assert visitor.console == []


REPORT_ERROR = """() => {
  const element = document.querySelector("[data-answer]");
  const toolCallId = element.querySelector("[data-call]").dataset.call;
  const payload = { toolCallId, result: "No receipt.", isError: true };
  agentcms.showEvent(agentcms.createAnswer(element), { type: "tool-result", payload });
}"""


def test_a_declined_call_has_not_failed_when_its_result_is_streamed(visit: Any, desk: str, ask: Any):
    """The stream may send the result of a call of which the page says already who declined it."""
    page = ask(visit(), desk, REFUND % "D-1")
    page.get_by_role("link", name="Decline").click()
    page.get_by_role("button", name="Decline").click()
    state = page.locator("[data-call-state]").first
    expect(page.locator(".answer-foot")).to_contain_text("tokens")
    expect(state).to_have_text("declined by publisher")

    page.evaluate(REPORT_ERROR)

    expect(page.locator("[data-call-result]").first).to_have_text("No receipt.")
    expect(state).to_have_text("declined by publisher")


def test_a_call_that_is_declined_at_once_is_not_shown_as_failed(visit: Any, desk: str, ask: Any):
    """Its stream goes on after the wait, without an end at which the page would get the decision."""
    call = {"toolCallId": "1", "toolName": "issue-refund", "args": {}}
    result = {**call, "result": "Declined.", "isError": True}
    chunks = [("tool-call", call), ("tool-call-approval", call), ("suspended", {}), ("tool-result", result)]
    events = [json.dumps({"type": kind, "payload": payload}) for kind, payload in chunks]
    body = "".join(f"id: {number}\ndata: {event}\n\n" for number, event in enumerate(events, 1))
    visitor = visit()
    visitor.page.route("**/stream?*", lambda route: route.fulfill(content_type="text/event-stream", body=body))

    page = ask(visitor, desk, REFUND % "D-1")

    expect(page.get_by_role("button", name="Approve")).to_be_visible()
    expect(page.locator('[data-call][data-state="failed"]')).to_have_count(0)
