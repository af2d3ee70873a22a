"""The focus in sight: not below the bar of a phone, nor in a part that is not shown otherwise.

A window at 200 % is as wide as a phone.
"""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import patch_agent

BAR = "document.querySelector('.titlebar .actions').getBoundingClientRect()"


def open_zoomed(visit: Any, path: str, width: int = 720, height: int = 450) -> Page:
    visitor = visit()
    visitor.page.set_viewport_size({"width": width, "height": height})
    page: Page = visitor.goto(path)
    return page


def test_the_end_of_a_page_is_above_a_bar_with_two_rows(visit: Any, agent: str):
    page = open_zoomed(visit, f"/agents/{agent}/versions/compare?from=1&to=2", width=390, height=600)
    assert page.evaluate(f"{BAR}.height") > 100

    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")

    end = page.get_by_text("Unchanged:").evaluate("element => element.getBoundingClientRect().bottom")
    assert end <= page.evaluate(f"{BAR}.top")


@pytest.mark.parametrize("width", [390, 720])
def test_the_bar_covers_nothing_that_gets_the_focus(visit: Any, api: Any, agent: str, width: int):
    for number in range(8):
        patch_agent(api, agent, description=f"Description {number}")
    page = open_zoomed(visit, f"/agents/{agent}/versions", width=width)
    page.locator("main .page a").first.focus()

    covered = []
    for _ in range(40):
        page.keyboard.press("Tab")
        rest = "document.activeElement.closest('.page')"
        covered.append(page.evaluate(f"{rest} && document.activeElement.getBoundingClientRect().bottom > {BAR}.top"))

    assert covered.count(False) > 20
    assert True not in covered


@pytest.mark.parametrize("path", ["/", "/runs"])
def test_the_head_of_a_table_shows_while_its_box_has_the_focus(visit: Any, api: Any, agent: str, path: str):
    assert api.post(f"/api/agents/{agent}/generate", json={"messages": "Hello"}).status_code == 200
    page = open_zoomed(visit, path)
    box = page.locator("[data-select-all]")
    assert box.evaluate("element => element.closest('thead').offsetHeight") <= 1

    box.evaluate("element => element.focus()")

    expect(box).to_be_focused()
    expect(box).to_be_in_viewport(ratio=1)
    assert box.evaluate("element => element.closest('thead').offsetHeight") > 10


def test_the_last_section_of_a_long_index_is_in_sight(visit: Any, agent: str):
    page = open_zoomed(visit, f"/agents/{agent}", width=1280, height=420)
    last = page.locator(".section-index a").last

    last.focus()

    expect(last).to_be_in_viewport(ratio=1)


def test_a_menu_is_closed_when_the_focus_leaves_it(visit: Any, agent: str):
    page = open_zoomed(visit, f"/agents/{agent}")
    menu = page.locator(".topbar-tools details.menu")
    menu.locator("summary").press("Enter")
    expect(menu.locator(".menu-body")).to_be_visible()

    page.keyboard.press("Tab")
    expect(menu.locator(".menu-body")).to_be_visible()
    menu.get_by_role("button", name="Sign out").focus()
    page.keyboard.press("Tab")

    expect(menu.locator(".menu-body")).to_be_hidden()
    expect(menu.locator("summary")).not_to_be_focused()
