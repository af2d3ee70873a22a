"""Publishing in the review of the editor, and what undoes it."""

from playwright.sync_api import expect

from tests.browser.agents.editor_page import append_text, instructions, publish, stored
from tests.browser.conftest import live_number, patch_agent


def test_changes_are_saved_in_their_review(visit, fresh, api):
    page = visit().goto(f"/agents/{fresh}")
    append_text(page, " Smile.")
    page.get_by_role("button", name="Review changes").click()
    dialog = page.locator("dialog[open]")
    expect(dialog).to_contain_text("Smile.")
    dialog.get_by_role("button", name="Close").focus()
    page.keyboard.press("n")
    expect(dialog.locator("[data-change-position]")).to_have_text("1 of 1")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("button", name="Review changes")).to_be_focused()

    page.keyboard.press("Enter")
    dialog.get_by_label("Message").fill("Friendlier")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("button", name="Review changes")).to_be_focused()
    page.keyboard.press("Enter")
    expect(dialog.get_by_label("Message")).to_have_value("Friendlier")
    dialog.get_by_label("Version name").fill("Smile")
    page.keyboard.press("Control+s")

    expect(page.locator(".toast")).to_contain_text("Draft v2 saved")
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("button", name="Review changes")).to_be_focused()
    (version, _) = api.get(f"/api/stored/agents/{fresh}/versions").json()["versions"]
    assert (version["name"], version["changeMessage"]) == ("Smile", "Friendlier")


def test_a_conflict_in_the_review_is_merged(visit, fresh, api):
    patch_agent(api, fresh, instructions="Greet guests.\nStay calm.\nAnswer briefly.")
    visitor = visit()
    page = visitor.goto(f"/agents/{fresh}")
    append_text(page, " Smile.")
    patch_agent(api, fresh, instructions="Greet all guests.\nStay calm.\nAnswer briefly.", autoPublish=False)

    page.get_by_role("button", name="Review changes").click()
    page.locator("dialog[open]").get_by_role("button", name="Save draft").click()

    expect(page.locator("dialog[open]")).to_have_count(0)
    expect(page.locator("#conflict-title")).to_be_focused()
    page.get_by_role("button", name="Merge both").press("Enter")
    dialog = page.locator("dialog[open]")
    expect(dialog).to_contain_text("This is not saved yet.")
    expect(dialog.locator("ins").filter(has_text="Smile")).to_be_visible()
    dialog.get_by_role("button", name="Save draft").press("Enter")

    expect(page.locator(".toast")).to_contain_text("Draft v4 saved")
    expect(instructions(page)).to_contain_text("Greet all guests.")
    expect(instructions(page)).to_contain_text("Answer briefly. Smile.")
    expect(page.get_by_text("Unsaved", exact=True)).to_be_hidden()
    assert stored(api, fresh)["instructions"] == "Greet all guests.\nStay calm.\nAnswer briefly. Smile."
    expect(page.get_by_text("Unsaved changes from")).to_be_hidden()
    assert [text for text in visitor.console if "409" not in text] == []


def test_a_draft_of_somebody_else_is_published_after_a_question(visit, fresh, api):
    other = visit("editor").goto(f"/agents/{fresh}")
    other.get_by_role("textbox", name="Description").fill("Theirs")
    other.keyboard.press("Control+s")
    expect(other.locator(".toast")).to_contain_text("Draft v2 saved")
    page = visit().goto(f"/agents/{fresh}")
    append_text(page, " Mine.")

    page.get_by_role("button", name="Review changes").click()
    page.locator("dialog[open]").get_by_label("Message").fill("Ready")
    page.get_by_role("button", name="Publish v3, with 1 version by editor").click()
    question = page.get_by_role("dialog", name="Publish v3 with versions of others?")
    expect(question.get_by_label("Reason")).to_have_value("Ready")
    assert live_number(api, fresh) == 1
    question.get_by_role("button", name="Publish v3, with 1 version by editor").click()

    expect(page.locator("#agent-title")).to_contain_text("Live v3")
    expect(page.locator("dialog[open]")).to_have_count(0)
    assert live_number(api, fresh) == 3


def test_publishing_can_be_undone(visit, fresh, api):
    page = visit().goto(f"/agents/{fresh}")
    append_text(page, " Published in haste.")
    publish(page)
    expect(page.locator(".toast").last).to_contain_text("v2 is live.")
    assert live_number(api, fresh) == 2

    page.locator(".toast").get_by_role("button", name="Undo").click()

    expect(page.locator("#agent-title")).to_contain_text("Live v1")
    assert live_number(api, fresh) == 1


def test_text_typed_after_publishing_is_kept_by_undo(visit, fresh):
    page = visit().goto(f"/agents/{fresh}")
    append_text(page, " Published in haste.")
    publish(page)
    expect(page.locator(".toast").last).to_contain_text("v2 is live.")
    append_text(page, " Typed since.")
    expect(page.get_by_text("Unsaved", exact=True)).to_be_visible()

    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(page.locator("#agent-title")).to_contain_text("Live v1")
    page.get_by_role("button", name="Restore").click()

    expect(instructions(page)).to_contain_text("Typed since.")


def test_discarding_the_draft_shows_live_and_can_be_undone(visit, fresh, api):
    patch_agent(api, fresh, instructions="A draft.", autoPublish=False)
    page = visit().goto(f"/agents/{fresh}")
    expect(page.locator("#notices")).to_contain_text("1 version ahead of live")

    page.get_by_role("link", name="Discard draft").click()
    page.get_by_role("button", name="Discard draft v2").click()

    expect(instructions(page)).to_contain_text("Greet guests.")
    expect(page.locator("#agent-title")).not_to_contain_text("Draft")
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(instructions(page)).to_contain_text("A draft.")


def test_the_buttons_of_a_review_take_two_rows_on_a_phone(visit, fresh, served):
    with served.client(served.keys["editor"]) as editor:
        patch_agent(editor, fresh, instructions="Greet all guests.", autoPublish=False)
    visitor = visit()
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    page = visitor.goto(f"/agents/{fresh}")
    page.get_by_role("textbox", name="Description").first.fill("Greets guests.")
    page.get_by_role("button", name="Review changes").click()
    foot = page.locator("dialog[open] .dialog-foot")
    expect(foot).to_be_visible()

    assert foot.bounding_box()["height"] < 130  # three rows are 173
    expect(foot.get_by_role("button", name="Compare with live")).to_be_visible()
    expect(page.locator("dialog[open]").get_by_role("button", name="Close")).to_be_visible()
