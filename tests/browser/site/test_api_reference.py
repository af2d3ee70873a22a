"""The list of routes beside the API reference."""

from typing import Any

from playwright.sync_api import expect


def test_the_list_of_routes_follows_the_reader(visit: Any):
    page = visit().goto("/api/docs")
    index = page.get_by_role("navigation", name="Routes")
    route = page.locator("#createKnowledgeBase, [id^=createKnowledge]").first

    route.evaluate("element => scrollTo(0, element.offsetTop + element.offsetParent.offsetTop - 70)")

    current = index.locator("[aria-current]")
    expect(current).to_have_count(1)
    expect(current).to_be_in_viewport()
    expect(current).not_to_have_text("List agents")


def test_a_route_at_the_end_stays_marked_when_it_is_opened(visit: Any):
    page = visit().goto("/api/docs")
    index = page.get_by_role("navigation", name="Routes")
    last = index.get_by_role("link").nth(-2)

    last.click()

    expect(last).to_have_attribute("aria-current", "true")
    expect(last).to_be_in_viewport()
