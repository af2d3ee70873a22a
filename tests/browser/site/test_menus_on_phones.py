"""Menus on a small screen, which open inside of it."""

from typing import Any

import pytest
from playwright.sync_api import expect

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
