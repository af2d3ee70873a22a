"""Model names, focus and title of the editor in a browser."""

import re
from typing import Any

from playwright.sync_api import expect


def test_the_offered_model_names_belong_to_the_provider(visit: Any, agent: str):
    page = visit().goto(f"/agents/{agent}")
    offered = "[...new Set([...document.querySelector('#model-names').options].map((each) => each.dataset.provider))]"
    assert page.evaluate(offered) == ["demo"]

    page.locator("#id_provider").fill("somebody-else")

    assert len(page.evaluate(offered)) > 1


def test_opening_folded_lines_keeps_the_focus(visit: Any, agent: str, api: Any):
    lines = "\n".join(f"Rule {number}" for number in range(30))
    api.patch(f"/api/stored/agents/{agent}", json={"instructions": lines})
    visitor = visit()
    page = visitor.goto(f"/agents/{agent}")
    page.get_by_role("textbox", name="Instructions").press("Control+End")
    page.keyboard.type("!")
    page.locator("button", has_text="Review").first.click()

    page.get_by_role("button", name="unchanged lines").press("Enter")

    expect(page.locator("dialog[open]")).to_contain_text("Rule 7")
    assert page.evaluate("document.activeElement.closest('dialog') !== null")
    assert visitor.console == []


def test_the_title_of_the_tab_is_updated_by_a_save(visit: Any, agent: str):
    page = visit().goto(f"/agents/{agent}")
    page.get_by_role("textbox", name="Name", exact=True).fill("Doorman")
    page.keyboard.press("Control+s")

    expect(page).to_have_title("Doorman · Agent CMS")
    expect(page.locator("h1")).to_have_text("Doorman")


def test_exact_times_are_in_the_zone_and_the_locale_of_the_reader(visit: Any, agent: str):
    page = visit(locale="de-DE", timezone_id="Asia/Tokyo").goto(f"/agents/{agent}/versions")

    expect(page.locator("time[data-relative]").first).to_have_attribute(
        "title", re.compile(r" um \d+:\d\d:\d\d GMT\+9")
    )


def test_a_scorer_of_every_answer_asks_for_no_amount(visit: Any, agent: str):
    page = visit().goto(f"/agents/{agent}")
    page.locator("#scorers summary").first.click()

    page.get_by_role("checkbox", name="Cites a source").check()
    amount = page.get_by_label("Sampling amount for Cites a source")
    expect(amount).to_be_hidden()
    page.get_by_label("How often Cites a source scores").select_option("ratio")

    expect(amount).to_be_visible()
