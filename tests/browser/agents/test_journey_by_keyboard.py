"""The life of an agent and a decision about a call, by keyboard alone: Tab, Enter, Space, arrow keys and letters."""

import json
import uuid
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.conftest import live_number

ORDER = "issue-refund " + json.dumps({"order": "K-1", "amount": 180})
MOST_TABS = 80

# Return the name and the visibility of the focused element. One that a sticky header covers is not visible.
FOCUSED = """() => {
  const element = document.activeElement;
  if (element === document.body) return {name: "", visible: true};  // the end of the page
  const box = element.getBoundingClientRect();
  const label = element.labels?.[0];
  const heading = document.getElementById(element.getAttribute("aria-labelledby"));
  const texts = [element.ariaLabel, heading?.innerText, label?.innerText, element.innerText, element.value];
  const name = texts.find((text) => text?.trim()) ?? "";
  const top = document.elementFromPoint(box.left + box.width / 2, box.top + Math.min(box.height / 2, 12));
  return {
    name: name.replace(/\\s+/g, " ").trim(),
    visible: box.width <= 1 || element.contains(top) || !!label?.contains(top),
    editable: element.matches("input:not([type=checkbox]), textarea, [contenteditable=true]"),
    html: element.outerHTML.slice(0, 200),
  };
}"""


class Keyboard:
    """A person who has no mouse. Each stop of the way must be visible."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def go_to(self, name: str, editable: bool = False) -> None:
        """Press Tab until the element of a name has the focus. Links may have the name of an editable field."""
        seen = []
        for _ in range(MOST_TABS):
            focused = self.page.evaluate(FOCUSED)
            assert focused["visible"], f"The focus is covered: {focused}"
            seen.append(focused["name"][:40])
            if focused["name"].startswith(name) and (focused["editable"] or not editable):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"Tab does not reach {name!r}: {seen}")

    def press(self, name: str, key: str = "Enter") -> None:
        self.go_to(name)
        self.page.keyboard.press(key)

    def type(self, name: str, text: str) -> None:
        self.go_to(name, editable=True)
        self.page.keyboard.press("Control+End")
        self.page.keyboard.type(text)

    def open(self, name: str) -> None:
        """Follow a link."""
        url = self.page.url
        self.press(name)
        self.page.wait_for_url(lambda address: address != url)
        self.page.evaluate("new Promise((resolve) => setTimeout(resolve))")  # htmx starts with a timer of 0 ms


def test_an_agent_is_edited_published_run_and_its_call_decided_by_keyboard(visit: Any, api: Any):
    visitor = visit()
    page = visitor.goto("/")
    keyboard = Keyboard(page)
    agent = create(keyboard, f"Clerk {uuid.uuid4().hex[:6]}")

    save_draft(keyboard)
    assert live_number(api, agent) == 1
    edit_and_review(keyboard)
    assert live_number(api, agent) == 3
    compare_and_roll_back(keyboard)
    assert live_number(api, agent) == 1
    restore(keyboard)
    assert live_number(api, agent) == 4
    run(keyboard)
    decide(keyboard)
    assert visitor.console == []


def create(keyboard: Keyboard, name: str) -> str:
    keyboard.open("New agent")
    keyboard.type("Name", name)
    keyboard.type("Instructions", "Refund orders.")
    keyboard.press("Tools: none")
    keyboard.press("Add tool")
    expect(keyboard.page.get_by_label("Search for a tool to add")).to_be_focused()
    keyboard.page.keyboard.type("issue-refund")
    keyboard.page.keyboard.press("Enter")
    expect(keyboard.page.locator("#tools-picker .picker-row")).to_contain_text("Issue a refund")
    keyboard.page.keyboard.press("Escape")
    keyboard.page.keyboard.press("Control+s")
    expect(keyboard.page.locator("h1")).to_have_text(name)
    return keyboard.page.url.rsplit("/", 1)[1]


def save_draft(keyboard: Keyboard) -> None:
    keyboard.type("Description", "Refunds orders")
    keyboard.press("Save draft")
    expect(keyboard.page.locator(".toast")).to_contain_text("Draft v2 saved. v1 is still live.")


def edit_and_review(keyboard: Keyboard) -> None:
    keyboard.type("Instructions", "\nAsk for the receipt.")
    keyboard.press("Review changes")
    keyboard.type("Message", "Ask for receipts")
    keyboard.press("Publish v3")
    expect(keyboard.page.locator("#agent-title")).to_contain_text("Live v3")


def compare_and_roll_back(keyboard: Keyboard) -> None:
    keyboard.open("History")
    keyboard.press("Select v3", "Space")
    keyboard.press("Select v1", "Space")
    keyboard.open("Compare")
    expect(keyboard.page.get_by_role("row", name="added").last).to_contain_text("receipt")
    keyboard.press("Publish v1")
    keyboard.press("Publish v1 (replaces v3)")
    expect(keyboard.page.locator("#agent-title")).to_contain_text("Live v1")


def restore(keyboard: Keyboard) -> None:
    keyboard.open("History")
    keyboard.press("Restore v3")
    keyboard.press("Restore and publish (replaces v1)")
    expect(keyboard.page.locator("#agent-title")).to_contain_text("Live v4")


def run(keyboard: Keyboard) -> None:
    keyboard.open("Playground")
    keyboard.type("Message", ORDER)
    keyboard.press("Run")
    expect(keyboard.page.locator("#tried").get_by_role("button", name="Approve")).to_be_visible()


def decide(keyboard: Keyboard) -> None:
    keyboard.press("Edit")
    keyboard.go_to("Amount", editable=True)
    keyboard.page.keyboard.press("Control+A")
    keyboard.page.keyboard.type("20")
    keyboard.press("Approve with these arguments")
    expect(keyboard.page.locator("#tried")).to_contain_text("Refunded 20.00 for order K-1")
    assert keyboard.page.evaluate("document.activeElement.closest('#tried') !== null"), "The focus is lost."
