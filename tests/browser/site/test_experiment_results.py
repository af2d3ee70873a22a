"""The results of an experiment: long texts in its table, and the form of a review."""

from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.site.test_accessibility_of_data import post

LONG_WORD = "word" * 300  # such as an address


@pytest.fixture
def experiment(api: httpx.Client, agent: str) -> str:
    """Return the ID of a finished experiment, whose answer has no spaces."""
    dataset = post(api, "/datasets", {"name": f"Questions {agent}"})["id"]
    item = post(api, f"/datasets/{dataset}/items", {"input": f"Read {LONG_WORD}"})
    body = {"targetType": "agent", "targetId": agent, "start": False}
    experiment = post(api, f"/datasets/{dataset}/experiments", body)["id"]
    path = f"/datasets/{dataset}/experiments/{experiment}"
    post(api, f"{path}/results", {"itemId": item["id"], "output": LONG_WORD})
    post(api, f"{path}/finalize", {})
    return str(experiment)


def test_texts_without_spaces_leave_the_other_columns_in_the_frame(visit: Any, experiment: str) -> None:
    page = visit().goto(f"/experiments/{experiment}")

    page.get_by_text("Review the answer").click()
    page.get_by_label("Tags").fill("t" * 120)
    page.get_by_label("Comment").fill(LONG_WORD)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Review saved.")).to_be_visible()

    for address in (page.url, f"{page.url}?tag={'t' * 120}"):  # the second one names the tag among the filters
        page.goto(address)
        for width in (1440, 800, 320):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") == width, address


def test_the_focus_stays_at_a_review_that_the_keyboard_saves(visit: Any, experiment: str) -> None:
    page = visit().goto(f"/experiments/{experiment}")
    page.get_by_text("Review the answer").press("Enter")

    page.get_by_label("Comment").fill("Good.")
    page.keyboard.press("Control+s")

    expect(page.get_by_text("Review saved.")).to_be_visible()
    expect(page.get_by_text("Review the answer")).to_be_focused()
