"""Pages with the colours of the operating system, in which backgrounds and transparent borders say nothing."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

BACKGROUND, BORDER = "background-color", "border-bottom-color"


@pytest.fixture
def page(visit: Any, agent: str) -> Page:
    """Return the comparison of two versions, in forced colours."""
    opened: Page = visit(own_context=True, forced_colors="active").goto(
        f"/agents/{agent}/versions/compare?from=1&to=2"
    )
    return opened


def test_the_current_one_of_a_group_stands_out(page: Page):
    views = page.get_by_role("group", name="Layout")
    current, other = views.locator("[aria-current]"), views.locator("a:not([aria-current])")

    assert color(current, BACKGROUND) != color(other, BACKGROUND)


def test_only_the_current_tab_has_a_line(page: Page):
    tabs = page.get_by_role("navigation", name="Agent", exact=True)
    current, other = tabs.locator("[aria-current]"), tabs.get_by_role("link", name="Playground")

    assert color(current, BORDER) != color(other, BORDER)
    assert color(other, BORDER) == "rgb(255, 255, 255)"


def test_changed_words_are_underlined(page: Page):
    expect(page.locator("main ins").first).to_have_css("text-decoration-line", "underline")


def color(part: Any, name: str) -> str:
    return str(part.evaluate("(part, name) => getComputedStyle(part).getPropertyValue(name)", name))
