"""Folded lines in a browser: conflict panel, review and admin."""

import re

from playwright.sync_api import expect

from tests.browser.conftest import live_number, patch_agent

LINES = [f"Rule {number}" for number in range(50)]


def test_a_fold_of_the_conflict_panel_opens_and_gets_the_focus(visit, agent, api):
    patch_agent(api, agent, instructions="\n".join(LINES))
    page = visit().goto(f"/agents/{agent}")
    patch_agent(api, agent, instructions="\n".join([*LINES, "Theirs"]))
    page.get_by_role("textbox", name="Instructions").press("Control+End")
    page.keyboard.type(" Mine")
    page.keyboard.press("Control+s")
    theirs, mine = page.locator("#conflict-sides details").first, page.locator("#conflict-sides details").last

    theirs.get_by_role("button", name="Show 47 unchanged lines").press("Enter")

    expect(theirs).to_contain_text("Rule 7")
    expect(theirs.locator("tbody:focus")).to_contain_text("Rule 7")
    expect(mine).not_to_contain_text("Rule 7")
    expect(page.get_by_role("textbox", name="Instructions")).to_contain_text("Mine")


def test_a_fold_of_the_review_opens_without_javascript(visit, agent, api):
    patch_agent(api, agent, instructions="\n".join(LINES))
    page = visit(java_script_enabled=False).goto(f"/agents/{agent}")
    page.locator("#id_instructions").fill("\n".join([*LINES, "  Mine\n"]))
    page.get_by_role("button", name="Review changes").click()

    page.get_by_role("button", name="Show 47 unchanged lines").click()

    expect(page).to_have_url(re.compile("#fold-instructions-1$"))
    expect(page.locator("#section-instructions")).to_contain_text("Rule 7")
    expect(page.locator("#section-instructions .line-added .text").first).to_have_text("  Mine", use_inner_text=True)


def two_versions_of_a_long_text(api, agent):
    patch_agent(api, agent, instructions="\n".join(LINES))
    patch_agent(api, agent, instructions="\n".join([*LINES, "Theirs"]))


def newest(page, agent):
    page = page.goto(f"/admin/versions_app/agentversion/?q={agent}")
    return page.locator("#result_list tbody tr").first


def test_a_fold_of_the_admin_opens_gets_the_focus_and_keeps_typed_text(visit, agent, api):
    two_versions_of_a_long_text(api, agent)
    visitor = visit("root")
    newest(visitor, agent).get_by_role("link").first.click()
    page = visitor.page
    page.get_by_label("Name:").fill("Typed")

    page.get_by_role("link", name="Show 47 unchanged lines").press("Enter")

    expect(page.locator("tbody:focus")).to_contain_text("Rule 7")
    expect(page.get_by_label("Name:")).to_have_value("Typed")
    assert visitor.console == []


def test_a_fold_of_a_confirmation_in_the_admin_opens_and_confirms_nothing(visit, agent, api):
    patch_agent(api, agent, instructions="\n".join(LINES))
    patch_agent(api, agent, instructions="\n".join([*LINES, "Draft"]), autoPublish=False)
    visitor = visit("root")
    newest(visitor, agent).get_by_role("checkbox").check()
    page = visitor.page
    page.get_by_label("Action:").select_option(label="Publish the selected version …")
    page.get_by_role("button", name="Go", exact=True).click()
    page.get_by_label("Reason").fill("Kinder")

    page.get_by_role("button", name="Show 47 unchanged lines").click()

    expect(page.locator("#section-instructions")).to_contain_text("Rule 7")
    expect(page.get_by_label("Reason")).to_have_value("Kinder")
    assert live_number(api, agent) == 4
    page.get_by_label("Reason").press("Enter")
    expect(page.locator(".messagelist")).to_contain_text("is live")
    assert live_number(api, agent) == 5
