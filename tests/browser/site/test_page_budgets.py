"""Transferred bytes and layout shift of a first visit."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

FIRST_PAGE = 150_000  # transferred bytes
FIRST_EDITOR = 200_000
SHIFT = 0.02
OBSERVE_SHIFTS = """window.shifts = [];
new PerformanceObserver((list) => window.shifts.push(...list.getEntries().filter((each) => !each.hadRecentInput)))
    .observe({type: "layout-shift", buffered: true});"""


def count_bytes(page: Page) -> dict[str, float]:
    """Return the transferred bytes by URL, which fill while the page loads."""
    session, addresses, sizes = page.context.new_cdp_session(page), {}, {}
    session.send("Network.enable")
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    session.on(
        "Network.responseReceived", lambda event: addresses.update({event["requestId"]: event["response"]["url"]})
    )
    session.on(
        "Network.loadingFinished",
        lambda event: sizes.update({addresses.get(event["requestId"], "?"): event["encodedDataLength"]}),
    )
    return sizes


PAGES = ["/", "/agents/{agent}", "/agents/{agent}/versions", "/exchange", "/account/keys"]
PAGES += ["/agents/{agent}/try", "/runs"]


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("width", [1440, 390])
def test_a_page_is_small_and_has_no_layout_shift(visit: Any, agent: str, path: str, width: int):
    visitor = visit(own_context=True)
    visitor.page.set_viewport_size({"width": width, "height": 900})
    visitor.page.add_init_script(OBSERVE_SHIFTS)
    sizes = count_bytes(visitor.page)

    page = visitor.goto(path.format(agent=agent))
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(300)  # late layout shifts count too

    assert len(sizes) >= 4, sizes
    assert sum(sizes.values()) < (FIRST_EDITOR if path == "/agents/{agent}" else FIRST_PAGE), sizes
    shifts = page.evaluate(
        "window.shifts.map((each) => [each.value, each.sources.map(({node}) => node?.outerHTML?.slice(0, 80))])"
    )
    assert sum(value for value, _ in shifts) < SHIFT, shifts


def test_the_editor_of_long_texts_loads_when_somebody_uses_the_page(visit: Any, agent: str):
    visitor = visit(own_context=True)
    sizes = count_bytes(visitor.page)
    page = visitor.goto(f"/agents/{agent}")
    page.wait_for_load_state("networkidle")
    assert not any("codemirror" in address for address in sizes)

    page.locator("#id_instructions").focus()

    expect(page.locator("#id_instructions_editor")).to_be_focused()
    expect(page.locator("#instructions .cm-lineNumbers")).to_contain_text("2")
    assert any("codemirror" in address for address in sizes)
    assert visitor.console == []
