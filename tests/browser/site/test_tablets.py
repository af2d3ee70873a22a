"""Pages on a tablet in portrait, where tables are not cards yet, and in the narrowest window."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import patch_agent

SIZES = [{"width": 769, "height": 1024}, {"width": 834, "height": 1112}, {"width": 960, "height": 1280}]
# As wide as a window of 1280 pixels at 400 %.
NARROW = {"width": 320, "height": 640}
PAGES = ["/", "/runs", "/approvals", "/threads", "/datasets", "/knowledge", "/team", "/account/keys"]


@pytest.fixture
def page(visit: Any, agent: str, api: Any) -> Page:
    """Return the page of a user for whose decision a call waits."""
    patch_agent(api, agent, tools=["issue-refund"])
    message = 'issue-refund {"order": "A-1", "amount": 180}'
    answer = api.post(f"/api/agents/{agent}/generate", json={"messages": message}, timeout=60).json()
    assert answer["finishReason"] == "suspended", answer
    opened: Page = visit().goto("/")
    expect(opened.locator("#approval-link")).to_be_visible()
    return opened


def test_no_page_scrolls_sideways(page: Page, agent: str, served: Any):
    for path in (*PAGES, f"/agents/{agent}", f"/agents/{agent}/runs"):
        page.goto(f"{served.base_url}{path}")
        for size in (*SIZES, NARROW):
            page.set_viewport_size(size)
            assert page.evaluate("document.documentElement.scrollWidth") == size["width"], path


def test_the_search_field_covers_the_top_bar_while_it_is_used(page: Page):
    page.set_viewport_size(SIZES[1])
    page.goto(page.url.rstrip("/") + "/runs")
    search = page.get_by_role("searchbox", name="Search agents")
    before = search.bounding_box()
    search.focus()
    after = search.bounding_box()

    assert before
    assert after
    assert (before["width"], after["width"] > 700) == (44, True)


def test_the_messages_of_runs_have_room(page: Page):
    page.set_viewport_size(SIZES[0])
    page.goto(page.url.rstrip("/") + "/runs")
    message = page.locator(".runs-table tbody th").first.bounding_box()

    assert message
    assert message["width"] >= 160
    expect(page.get_by_role("columnheader", name="Tokens")).to_be_hidden()
