"""The history on a small screen."""

from typing import Any

from playwright.sync_api import expect

from tests.browser.conftest import live_number, patch_agent


def test_the_newest_version_is_visible_below_one_row_of_controls(visit: Any, agent: str, api: Any):
    patch_agent(api, agent, name="Day porter", autoPublish=False)
    visitor = visit()
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    page = visitor.goto(f"/agents/{agent}/versions")

    rows = {round(element.bounding_box()["y"]) for element in page.locator("#agent-actions > *").all()}
    assert len(rows) == 1
    bar = page.locator(".history-bar").bounding_box()
    assert bar["height"] < 60
    assert page.locator(".timeline-item").first.bounding_box()["y"] < 844 / 2
    expect(page.get_by_label("Author")).to_be_hidden()
    page.get_by_text("Filter", exact=True).click()
    expect(page.get_by_label("Author")).to_be_visible()


def test_a_version_is_published_from_its_row(visit: Any, agent: str, api: Any):
    visitor = visit(has_touch=True, is_mobile=True)
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    page = visitor.goto(f"/agents/{agent}/versions")

    page.locator("#activate-1").tap()
    page.get_by_role("button", name="Publish v1 (replaces v3)").tap()

    expect(page.locator(".toast")).to_contain_text("v1 is live.")
    assert live_number(api, agent) == 1
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert visitor.console == []


def test_an_activation_reads_from_top_to_bottom(visit: Any, agent: str):
    visitor = visit()
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    move = visitor.goto(f"/agents/{agent}/live-history").locator(".timeline-item").first

    head, why, meta = (element.bounding_box() for element in move.locator("> *").all()[:3])
    acts = move.locator(".timeline-side > *").last.bounding_box()

    separator = 20  # before the first part, outside of the visible box
    assert head["x"] == why["x"] == meta["x"] + separator
    assert head["y"] < why["y"] < meta["y"]
    assert acts["y"] + acts["height"] > meta["y"]
    assert acts["x"] + acts["width"] <= 390


def test_the_status_of_an_activation_stands_beside_its_versions(visit: Any, agent: str):
    visitor = visit()
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    head = visitor.goto(f"/agents/{agent}/live-history").locator(".timeline-head").first

    versions, chip = (head.locator(part).last.bounding_box() for part in (".version", ".chip"))

    assert abs(versions["y"] + versions["height"] / 2 - chip["y"] - chip["height"] / 2) < 4


def test_the_choices_of_a_comparison_are_legible_at_400_percent(visit: Any, agent: str):
    visitor = visit()
    visitor.page.set_viewport_size({"width": 320, "height": 640})

    page = visitor.goto(f"/agents/{agent}/versions/compare?from=1&to=2")

    widths = page.locator(".compare-choice").evaluate_all("choices => choices.map(choice => choice.offsetWidth)")
    assert min(widths) >= 104
    assert page.evaluate("document.documentElement.scrollWidth") == 320
