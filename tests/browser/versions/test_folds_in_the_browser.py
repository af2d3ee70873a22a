"""Folded lines open where they stand: in the conflict panel, and in the review without script."""

import re

from playwright.sync_api import expect

from tests.browser.versions.conftest import patch

LINES = [f"Rule {number}" for number in range(50)]


def test_a_fold_of_the_conflict_panel_opens_and_takes_the_focus(visit, agent, api):
    patch(api, agent, instructions="\n".join(LINES))
    page = visit().goto(f"/agents/{agent}")
    patch(api, agent, instructions="\n".join([*LINES, "Theirs"]))
    page.get_by_role("textbox", name="Instructions").press("Control+End")
    page.keyboard.type(" Mine")
    page.keyboard.press("Control+s")
    theirs, mine = page.locator("#clash details").first, page.locator("#clash details").last

    theirs.get_by_role("button", name="47 unchanged lines: show").press("Enter")

    expect(theirs).to_contain_text("Rule 7")
    expect(theirs.locator("tbody:focus")).to_contain_text("Rule 7")
    expect(mine).not_to_contain_text("Rule 7")
    expect(page.get_by_role("textbox", name="Instructions")).to_contain_text("Mine")


def test_a_fold_of_the_review_opens_without_script(visit, agent, api):
    patch(api, agent, instructions="\n".join(LINES))
    page = visit(java_script_enabled=False).goto(f"/agents/{agent}")
    page.locator("#id_instructions").fill("\n".join([*LINES, "  Mine\n"]))
    page.get_by_role("button", name="Review").click()

    page.get_by_role("button", name="47 unchanged lines: show").click()

    expect(page).to_have_url(re.compile("#fold-instructions-1$"))
    expect(page.locator("#section-instructions")).to_contain_text("Rule 7")
    expect(page.locator("#section-instructions .line-added .text").first).to_have_text("  Mine", use_inner_text=True)
