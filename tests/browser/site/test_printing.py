"""Printed pages: what they say, without what can only be pressed."""

import uuid

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
