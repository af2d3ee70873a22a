"""Menus on a small screen, which open inside of it."""

import uuid
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.site.test_accessibility_of_data import post

CUT_OFF = """items => items.filter(item => {
  const box = item.getBoundingClientRect()
  return box.left < 0 || box.right > innerWidth
}).map(item => item.textContent.trim())"""


@pytest.mark.parametrize("path", ["/", "/runs", "/account/keys"])
def test_the_menu_of_the_sections_is_in_the_window(visit: Any, path: str):
    visitor = visit()
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    page = visitor.goto(path)

    page.locator(".primary-nav summary").click()

    sections = page.locator(".primary-nav .menu-body a")
    expect(sections.first).to_be_visible()
    assert sections.evaluate_all(CUT_OFF) == []


def test_the_menu_of_a_dataset_is_in_the_window(visit: Any, served: Any):
    with served.client(served.keys["root"]) as root:
        dataset = post(root, "/datasets", {"name": f"Exam {uuid.uuid4().hex[:8]}"})["id"]
        post(root, f"/datasets/{dataset}/items", {"input": "When do you open?"})
    visitor = visit("root")
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    page = visitor.goto(f"/datasets/{dataset}")

    page.get_by_text("More", exact=True).click()

    acts = page.locator(".page-header .menu[open] :is(a, button)")
    expect(acts.first).to_be_visible()
    assert acts.evaluate_all(CUT_OFF) == []
