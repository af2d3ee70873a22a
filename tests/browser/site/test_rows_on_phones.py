"""Rows of tables on a small screen, where each is a card."""

import uuid
from typing import Any

import httpx
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import create_agent
from tests.browser.site.test_accessibility_of_data import post

OVERLAPS = """row => {
  const boxes = [...row.querySelectorAll("td, th")].map(cell => {
    const range = document.createRange()
    range.selectNodeContents(cell)
    return range.getBoundingClientRect()
  }).filter(box => box.width)
  return boxes.some((one, index) => boxes.slice(index + 1).some(other =>
    one.left < other.right && other.left < one.right && one.top + 1 < other.bottom && other.top + 1 < one.bottom))
}"""


def open_phone(visit: Any, path: str, name: str = "root") -> Page:
    visitor = visit(name)
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    page: Page = visitor.goto(path)
    return page


def middle(part: Locator) -> float:
    box = part.bounding_box()
    assert box is not None
    return box["y"] + box["height"] / 2


def test_the_actions_of_an_item_stand_beside_its_last_value(visit: Any, served: Any):
    with served.client(served.keys["root"]) as root:
        dataset = post(root, "/datasets", {"name": f"Exam {uuid.uuid4().hex[:8]}"})["id"]
        truth = "At nine in the morning, from Monday to Saturday, but not on holidays."
        post(root, f"/datasets/{dataset}/items", {"input": "When do you open?", "groundTruth": truth})
    row = open_phone(visit, f"/datasets/{dataset}").locator(".items-table tbody tr")

    edit = row.get_by_role("link", name="Edit")

    assert abs(middle(edit) - middle(row.locator("td").nth(2))) < 4
    assert row.evaluate(OVERLAPS) is False


def test_wide_actions_of_a_deleted_agent_cover_nothing(visit: Any, api: httpx.Client):
    agent_id = f"trash-{uuid.uuid4().hex[:8]}"
    create_agent(api, agent_id)
    api.delete(f"/api/stored/agents/{agent_id}").raise_for_status()
    row = open_phone(visit, "/deleted-agents").locator("tbody tr", has_text=agent_id)

    expect(row.get_by_role("button", name="Restore").or_(row.get_by_role("link", name="Restore"))).to_be_visible()
    assert row.evaluate(OVERLAPS) is False


def test_the_states_of_runs_end_in_one_line(visit: Any, api: httpx.Client):
    agent_id = f"clerk-{uuid.uuid4().hex[:8]}"
    create_agent(api, agent_id, tools=["issue-refund"], model={"provider": "demo", "name": "storyteller"})
    for message in ("Hello", 'issue-refund {"order": "A-1", "amount": 180}'):
        api.post(f"/api/agents/{agent_id}/generate", json={"messages": message}).raise_for_status()
    chips = open_phone(visit, f"/agents/{agent_id}/runs", "publisher").locator(".runs-table .chip")

    expect(chips).to_have_text(["Waiting for approval", "Succeeded"])
    waiting, done = (chips.nth(index).bounding_box() for index in (0, 1))
    assert abs(waiting["x"] + waiting["width"] - done["x"] - done["width"]) < 1


def test_a_long_name_of_a_workflow_stays_inside_of_its_card(visit: Any, api: httpx.Client):
    agent = f"scribe-{uuid.uuid4().hex[:8]}"
    create_agent(api, agent, workflows=["summarise-thread"])

    page = open_phone(visit, f"/agents/{agent}/versions/1", "publisher")

    chip = page.locator(".parts .chip", has_text="summarise-thread").bounding_box()
    card = page.locator("main dl.parts").first.bounding_box()
    assert chip["x"] + chip["width"] <= card["x"] + card["width"]


def test_headings_that_sort_have_names_and_show_the_focus(visit: Any, agent: str):
    page = open_phone(visit, "/", "publisher")
    head = page.locator(".agents-table thead")

    names = [page.get_by_role("columnheader", name=name, exact=True) for name in ("Name", "Updated")]

    assert [name.count() for name in names] == [1, 1]
    assert head.bounding_box()["height"] <= 1
    for control in ("input", "th:nth-of-type(2) a", "th:last-of-type a"):
        head.locator(control).focus()
        box = head.locator(control).bounding_box()
        assert head.bounding_box()["height"] > box["height"] > 10
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390


def test_the_box_that_selects_all_runs_shows_the_focus(visit: Any, api: httpx.Client, agent: str):
    api.post(f"/api/agents/{agent}/generate", json={"messages": "Hello"}).raise_for_status()
    page = open_phone(visit, f"/agents/{agent}/runs", "publisher")
    box = page.get_by_role("checkbox", name="Select all")

    box.focus()

    box.press("Space")
    expect(page.get_by_role("checkbox", checked=True)).to_have_count(2)
    assert page.locator("thead").bounding_box()["height"] > 20


def test_a_label_is_left_of_a_text_from_right_to_left_and_none_is_without_a_value(visit: Any, served: Any):
    with served.client(served.keys["root"]) as root:
        dataset = post(root, "/datasets", {"name": f"Exam {uuid.uuid4().hex[:8]}"})["id"]
        post(root, f"/datasets/{dataset}/items", {"input": "متى تفتحون أبوابكم في الصباح؟ " * 4})
    row = open_phone(visit, f"/datasets/{dataset}").locator(".items-table tbody tr")

    cell, text = row.locator("td").first.evaluate(
        """cell => {
          const range = document.createRange()
          range.selectNodeContents(cell)
          return [cell.getBoundingClientRect().left, range.getBoundingClientRect().left]
        }"""
    )

    assert text - cell > 90
    expect(row.locator("[data-label='Ground truth']")).to_be_hidden()
