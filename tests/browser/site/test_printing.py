"""Printed pages: what they say, without what can only be pressed."""

import re
import uuid
from datetime import UTC, datetime

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import create_agent

IS_CUT = "element => element.scrollWidth > element.clientWidth"


@pytest.mark.parametrize(
    ("path", "bar", "content"),
    [("versions", ".history-bar", "First version"), ("versions/compare?from=1&to=2", ".diff-bar", "Be brief.")],
)
def test_a_printed_page_has_the_whole_name_and_no_tabs_and_no_bar(visit, api, path, bar, content):
    agent = f"printed-{uuid.uuid4().hex[:8]}"
    create_agent(api, agent, name="Long " * 39 + "name", instructions="Be kind.")
    assert api.patch(f"/api/stored/agents/{agent}", json={"instructions": "Be brief."}).is_success
    page = visit(own_context=True).goto(f"/agents/{agent}/{path}")
    hidden = [page.locator(".titlebar-tabs"), page.locator(bar)]
    for part in hidden:
        expect(part).to_be_visible()

    heading = page.locator(".titlebar h1")
    assert heading.evaluate(IS_CUT)

    page.emulate_media(media="print")

    for part in hidden:
        expect(part).to_be_hidden()
    assert not heading.evaluate(IS_CUT)
    expect(page.locator("main").get_by_text(content).first).to_be_visible()


def test_the_dark_theme_is_printed_in_light_colours_with_marks_beside_them(visit, api):
    agent = f"printed-{uuid.uuid4().hex[:8]}"
    create_agent(api, agent, instructions="Be kind to all.")
    assert api.patch(f"/api/stored/agents/{agent}", json={"instructions": "Be brief to all."}).is_success
    visitor = visit(own_context=True)
    visitor.context.add_cookies([{"name": "theme", "value": "dark", "url": visitor.base_url}])
    page = visitor.goto(f"/agents/{agent}/versions/compare?from=1&to=2")
    removed, added = page.locator("main del").first, page.locator("main ins").first

    page.emulate_media(media="print")

    expect(page.locator("body")).to_have_css("color", "rgb(21, 32, 28)")
    # Browsers print no backgrounds.
    expect(removed).to_have_css("text-decoration-line", "line-through")
    expect(added).to_have_css("text-decoration-line", "underline")


def test_a_printed_run_says_when_it_ran_and_what_it_used(visit, api):
    agent = f"printed-{uuid.uuid4().hex[:8]}"
    create_agent(api, agent)
    run = api.post(f"/api/agents/{agent}/generate", json={"messages": "Hello"}).json()["runId"]
    page = visit(own_context=True).goto(f"/runs/{run}")
    facts = page.get_by_role("complementary", name="About this run")
    started = facts.locator("time")

    page.emulate_media(media="print")

    expect(facts.get_by_text("Output tokens")).to_be_visible()
    expect(page.locator("#scores")).to_be_hidden()
    # "just now" says nothing on paper.
    expect(started).to_have_css("font-size", "0px")
    exact = started.evaluate("time => getComputedStyle(time, '::after').content")
    assert re.search(rf"{datetime.now(UTC):%Y}.*:\d\d", exact), exact
