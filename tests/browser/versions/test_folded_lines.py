"""Folded lines and parts of long texts in a browser: comparison, conflict panel, review and admin."""

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


# --- Long texts, which are shown in parts


def long_text(word):
    return "\n".join(f"Rule {number} {word}" for number in range(700))


def two_versions_of_700_lines(api, agent):
    patch_agent(api, agent, instructions=long_text("old"))
    patch_agent(api, agent, instructions=long_text("new"))
    number = live_number(api, agent)
    return f"/agents/{agent}/versions/compare?from={number - 1}&to={number}"


def test_the_next_part_of_a_long_text_is_added_to_the_page(visit, agent, api):
    visitor = visit()
    page = visitor.goto(two_versions_of_700_lines(api, agent))
    text = page.locator("#section-instructions")
    expect(text.locator("tr.line-added")).to_have_count(300)

    text.get_by_role("link", name="Show 300 more of 400 lines").press("Enter")

    expect(text.locator("tr.line-added")).to_have_count(600)
    assert page.evaluate("document.activeElement.id") == "fold-instructions-part-2"
    page.keyboard.press("n")
    expect(page.locator("[data-change-position]")).to_have_text("1 of 2")
    text.get_by_role("link", name="Show 100 more lines").click()
    expect(text.locator("tr.line-added")).to_have_count(700)
    expect(text.locator(".line-folded")).to_have_count(0)
    lines = text.locator("td.text.added-side").all_inner_texts()
    assert lines == long_text("new").split("\n")
    assert visitor.console == []


def test_the_parts_of_a_long_text_are_pages_without_javascript(visit, agent, api):
    page = visit(java_script_enabled=False).goto(two_versions_of_700_lines(api, agent))
    text = page.locator("#section-instructions")

    text.get_by_role("link", name="Show 300 more of 400 lines").click()

    expect(page).to_have_url(re.compile("#fold-instructions-part-2$"))
    expect(text.locator("td.text.added-side").first).to_have_text("Rule 300 new")
    text.get_by_role("link", name="Show the 300 lines before").click()
    expect(text.locator("td.text.added-side").first).to_have_text("Rule 0 new")


def test_the_next_part_of_a_review_is_added_to_the_dialog(visit, agent, api):
    patch_agent(api, agent, instructions=long_text("old"))
    page = visit().goto(f"/agents/{agent}")
    page.get_by_role("textbox", name="Instructions").press("Control+a")
    page.keyboard.insert_text(long_text("new"))
    page.get_by_role("button", name="Review changes").click()
    dialog = page.locator("dialog[open]")
    expect(dialog.locator("tr.line-removed")).to_have_count(150)
    expect(dialog.locator("tr.line-added")).to_have_count(150)

    dialog.get_by_role("button", name="Show 300 more of 1,100 lines").click()

    expect(dialog.locator("tr.line-removed, tr.line-added")).to_have_count(600)
    dialog.get_by_role("button", name="Show 300 more of 800 lines").click()
    expect(dialog.locator("tr.line-added")).to_have_count(450)
