"""The editor in a browser."""

import re
import uuid

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import live_number, patch_agent
from tests.served import PASSWORD


def instructions(page):
    return page.get_by_role("textbox", name="Instructions")


def append_text(page, text):
    """Type at the end of the instructions."""
    instructions(page).press("Control+End")
    page.keyboard.type(text)


def publish(page):
    """Publish the text of the editor, in the review."""
    page.get_by_role("button", name="Review changes").click()
    page.locator("dialog[open]").get_by_role("button", name="Publish v").click()


def open_section(page, section):
    page.locator(f"#{section} > summary").click()


def stored(api, agent):
    return api.get(f"/api/stored/agents/{agent}", params={"status": "draft"}).json()


def test_an_agent_is_created_edited_and_published_by_keyboard(visit, api):
    visitor = visit()
    page = visitor.goto("/")
    page.locator(".page-header").get_by_role("link", name="New agent").press("Enter")
    name = f"Doorman {uuid.uuid4().hex[:6]}"
    page.get_by_label("Name", exact=True).fill(name)
    append_text(page, "Open the door for {{guest}}.")
    expect(page.locator(".variable-list")).to_contain_text("guest")
    page.keyboard.press("Control+s")

    page.wait_for_url("**/agents/doorman-*")
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    agent = page.url.rsplit("/", 1)[1]
    page.evaluate("window.notReloaded = true")
    append_text(page, " Greet them.")
    expect(page.get_by_text("Unsaved", exact=True)).to_be_visible()
    page.keyboard.press("Control+s")

    expect(page.locator(".toast").last).to_contain_text("Draft v2 saved")
    expect(page.locator("#agent-title")).to_contain_text("Draft ahead by 1")
    expect(page.locator("#versions")).to_contain_text("v2")
    expect(page.get_by_text("Unsaved", exact=True)).to_be_hidden()
    assert stored(api, agent)["instructions"] == "Open the door for {{guest}}. Greet them."
    assert live_number(api, agent) == 1

    page.get_by_role("button", name="Review changes").press("Enter")
    expect(page.locator("dialog[open]")).to_contain_text("Draft v2 compared with live, v1")
    page.locator("dialog[open]").get_by_label("Message").fill("For the door")
    page.get_by_role("button", name="Publish v2").press("Enter")
    expect(page.locator("#agent-title")).to_contain_text("Live v2")
    expect(page.locator("dialog[open]")).to_have_count(0)
    expect(page.locator("#agent-title")).not_to_contain_text("Draft")
    assert live_number(api, agent) == 2
    assert page.evaluate("window.notReloaded")
    page = visitor.goto("/new-agent")
    expect(page.locator("h1")).to_have_text("New agent")
    expect(page.get_by_text("Unsaved changes")).to_be_hidden()
    assert visitor.console == []


def test_saving_without_changes_shows_a_message(visit, fresh):
    page = visit().goto(f"/agents/{fresh}")

    page.get_by_role("button", name="Save draft").click()

    expect(page.locator(".toast")).to_contain_text("No changes")


def test_text_typed_during_a_save_is_kept(visit, fresh, api):
    page = visit().goto(f"/agents/{fresh}")
    append_text(page, " One.")
    requests = []
    page.route(f"**/agents/{fresh}", lambda route: requests.append(route), times=1)

    with page.expect_request(f"**/agents/{fresh}"):
        page.keyboard.press("Control+s")
    page.keyboard.type(" Two.")
    requests[0].continue_()

    expect(page.locator(".toast")).to_contain_text("Draft v2 saved")
    expect(instructions(page)).to_contain_text("One. Two.")
    expect(page.get_by_text("Unsaved", exact=True)).to_be_visible()
    page.keyboard.press("Control+s")
    expect(page.locator("#agent-title")).to_contain_text("Draft ahead by 2")
    assert stored(api, fresh)["instructions"].endswith("One. Two.")


def test_concurrent_editors_lose_no_text(visit, fresh, api):
    first, second = visit(), visit("editor")
    page = first.goto(f"/agents/{fresh}")
    append_text(page, " Mine.")
    other = second.goto(f"/agents/{fresh}")
    other.get_by_role("textbox", name="Description").fill("Theirs")
    other.keyboard.press("Control+s")
    expect(other.locator(".toast")).to_contain_text("Draft v2 saved")

    page.keyboard.press("Control+s")

    conflict = page.locator("#conflict")
    expect(conflict).to_contain_text("saved v2 in the meantime")
    expect(conflict.locator("#conflict-sides")).to_contain_text("Theirs")
    expect(conflict.locator("#conflict-sides")).to_contain_text("Mine.")
    expect(instructions(page)).to_contain_text("Mine.")
    assert stored(api, fresh)["headVersionNumber"] == 2

    conflict.get_by_role("button", name="Save my changes on top of v2").click()
    expect(page.locator("#agent-title")).to_contain_text("Draft ahead by 2")
    expect(page.locator("#conflict")).to_have_count(0)
    after = stored(api, fresh)
    assert after["description"] == "Theirs"
    assert after["instructions"].endswith("Mine.")


def test_unsaved_text_of_a_closed_tab_can_be_restored(visit, fresh):
    visitor = visit()
    page = visitor.goto(f"/agents/{fresh}")
    append_text(page, " Not saved yet.")
    expect(page.get_by_text("Unsaved", exact=True)).to_be_visible()
    page.close()

    visitor.page = visitor.open()
    page = visitor.goto(f"/agents/{fresh}")
    banner = page.locator("[data-recovery]")
    expect(banner).to_have_text(re.compile(r"Unsaved changes from \d\d:\d\d( [AP]M)?\."))
    page.evaluate("scrollTo(0, document.body.scrollHeight)")  # as after a reload of a page that was scrolled
    expect(banner).to_be_in_viewport()
    page.get_by_role("button", name="Restore").click()

    expect(instructions(page)).to_contain_text("Not saved yet.")


def test_unsaved_text_outlives_an_expired_session(visit, fresh, api):
    visitor = visit()
    page = visitor.goto(f"/agents/{fresh}")
    append_text(page, " Kept.")
    visitor.context.clear_cookies(name="sessionid")
    page.keyboard.press("Control+s")

    expect(page.locator(".toast-fault")).to_contain_text("Your text is stored")
    with visitor.context.expect_page() as opened:
        page.get_by_role("link", name="Sign in in a new tab").click()
    tab = opened.value
    tab.fill("[name=username]", "publisher")
    tab.fill("[name=password]", PASSWORD)
    tab.keyboard.press("Enter")
    tab.wait_for_url(lambda url: "/sign-in" not in url)
    page.bring_to_front()
    page.get_by_role("button", name="Save draft").click()

    expect(page.locator("#agent-title")).to_contain_text("Draft ahead by 1")
    assert stored(api, fresh)["instructions"].endswith("Kept.")


def test_invalid_json_is_located_and_not_saved(visit, fresh, api):
    page = visit().goto(f"/agents/{fresh}")
    open_section(page, "metadata")
    page.get_by_role("button", name="Edit Metadata as JSON").click()
    page.get_by_role("textbox", name="Metadata (JSON)").press("Control+a")
    page.keyboard.type('{"team": ')
    reason = page.locator(".reason")

    expect(reason).to_contain_text("Metadata")
    expect(page.locator("#metadata")).to_contain_text(re.compile(r"Line 1, column \d+"))
    page.get_by_role("button", name="Save draft").click()
    expect(page.locator("#notices")).to_contain_text("Not saved")
    assert stored(api, fresh)["headVersionNumber"] == 1

    page.get_by_role("textbox", name="Metadata (JSON)").press("Control+a")
    page.keyboard.press("Delete")
    page.keyboard.type('"a text"')
    page.get_by_role("button", name="Save draft").click()
    expect(page.locator("#notices")).to_contain_text("Not saved")
    expect(page.locator("#id_metadata_error")).to_contain_text("must be an object")


def test_tools_are_added_moved_and_removed_by_keyboard(visit, fresh, api):
    visitor = visit()
    page = visitor.goto(f"/agents/{fresh}")
    open_section(page, "tools")
    page.locator("#tools-picker summary").press("Enter")
    for words, key in (("calculator", "calculator"), ("word count", "word-count"), ("links", "extract-links")):
        page.keyboard.type(words)
        expect(page.locator(f"#tools-options [data-option={key}]")).to_have_count(1)
        expect(page.locator("#tools-options [data-option]")).to_have_count(1)
        page.keyboard.press("Enter")
        expect(page.locator(f"#tools-picker [data-row][data-key={key}]")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#tools-picker summary")).to_be_focused()

    page.get_by_role("button", name="Move Extract links up").press("Enter")
    expect(page.get_by_role("button", name="Move Extract links up")).to_be_focused()
    page.get_by_role("button", name="Remove Calculator").press("Enter")
    expect(page.get_by_role("button", name="Remove Extract links")).to_be_focused()
    page.keyboard.press("Control+s")

    expect(page.locator(".toast")).to_contain_text("Draft v2 saved")
    assert stored(api, fresh)["tools"] == ["extract-links", "word-count"]
    assert visitor.console == []


def test_keys_right_after_the_picker_has_opened_reach_its_search(visit, fresh):
    page = visit().goto(f"/agents/{fresh}")
    open_section(page, "tools")
    is_focused = page.evaluate("""() => {
        document.querySelector("#tools-picker summary").click();
        return document.activeElement.matches("#tools-picker [data-add-search]");
    }""")
    assert is_focused, "the keys typed until the focus moves would be lost"


def test_a_late_answer_does_not_replace_the_results_of_a_later_search(visit, fresh):
    page = visit().goto(f"/agents/{fresh}")
    open_section(page, "tools")
    earlier = []
    page.route("**/options/tools?q=", lambda route: earlier.append(route), times=1)
    page.locator("#tools-picker summary").press("Enter")
    page.keyboard.type("calculator")
    expect(page.locator("#tools-options [data-option]")).to_have_count(1)
    assert len(earlier) == 1
    earlier[0].continue_()
    page.evaluate("new Promise((resolve) => setTimeout(resolve, 300))")
    assert page.locator("#tools-options [data-option]").count() == 1


def test_instructions_are_previewed_with_values_and_expanded(visit, fresh, api):
    visitor = visit()
    page = visitor.goto(f"/agents/{fresh}")
    append_text(page, " Say hello to {{guest || 'everybody'}} in {{language}}.")
    expect(page.locator(".variable-list li")).to_have_text(["guest default: everybody", "language"])
    page.locator(".declared-variables summary").click()
    page.get_by_role("button", name="Declare a variable").click()
    page.keyboard.type("language")
    page.get_by_role("textbox", name="Default", exact=True).fill("French")

    page.get_by_role("button", name="Preview with values").click()
    page.get_by_role("textbox", name="guest").fill("Ada")
    preview = page.get_by_role("region", name="Instructions with values")
    expect(preview).to_contain_text("Say hello to Ada in French.")

    page.get_by_role("button", name="Expand").press("Enter")
    box = page.locator("#instructions").bounding_box()
    assert (box["x"], box["y"], box["width"], box["height"]) == (0, 0, 1280, 900)
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Expand")).to_be_focused()
    assert page.locator("[inert]").count() == 0
    page.keyboard.press("Control+s")
    expect(page.locator(".toast")).to_contain_text("Draft v2 saved")
    assert stored(api, fresh)["requestContextSchema"] == {"properties": {"language": {"default": "French"}}}
    assert visitor.console == []


def test_rows_of_unsaved_changes_are_restored(visit, fresh, api):
    visitor = visit()
    page = visitor.goto(f"/agents/{fresh}")
    open_section(page, "metadata")
    page.get_by_role("button", name="Add a row").click()
    page.keyboard.type("floor")
    page.locator("[name=metadata-row-kind]").select_option("number")
    page.locator("[name=metadata-row-value]").fill("4")
    open_section(page, "processors")
    page.locator("#input_processors-picker summary").click()
    page.locator("#input_processors-options [data-option=mask-email]").click()
    expect(page.get_by_text("Unsaved", exact=True)).to_be_visible()
    page.close()

    visitor.page = visitor.open()
    page = visitor.goto(f"/agents/{fresh}")
    page.get_by_role("button", name="Restore").click()
    expect(page.locator("#input_processors-picker [data-row]")).to_have_count(1)
    expect(page.locator("[name=metadata-row-name]")).to_have_value("floor")
    page.keyboard.press("Control+s")

    expect(page.locator(".toast")).to_contain_text("Draft v2 saved")
    assert stored(api, fresh)["metadata"] == {"floor": 4}
    assert stored(api, fresh)["inputProcessors"] == [{"key": "mask-email"}]


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


def test_a_second_tab_is_notified_of_a_save(visit, fresh, api):
    page = visit().goto(f"/agents/{fresh}")
    patch_agent(api, fresh, instructions="From elsewhere.")

    page.evaluate("document.body.dispatchEvent(new Event('agent-saved'))")

    expect(page.locator("#presence")).to_contain_text("v2 was saved in the meantime")


def test_other_editors_of_the_agent_are_shown(visit, fresh):
    visit("editor").goto(f"/agents/{fresh}").wait_for_load_state("networkidle")

    page = visit().goto(f"/agents/{fresh}")

    expect(page.locator("#presence")).to_contain_text("editor")


def test_deleting_needs_the_name(visit, fresh, api):
    page = visit().goto(f"/agents/{fresh}")
    page.locator(".titlebar summary").click()
    page.get_by_role("link", name="Delete").click()
    page.get_by_label("Type the name to confirm").fill("Wrong")
    page.get_by_role("button", name="Delete Concierge").click()
    expect(page.locator("dialog[open]")).to_contain_text("The name does not match")

    page.get_by_label("Type the name to confirm").fill("Concierge")
    page.get_by_role("button", name="Delete Concierge").click()

    page.wait_for_url(lambda url: url.endswith("/"))
    expect(page.locator(".toast")).to_contain_text("was moved to the trash")
    assert api.get(f"/api/stored/agents/{fresh}").status_code == 404


@pytest.mark.parametrize("who", ["editor", "publisher"])
def test_the_editor_works_without_javascript(visit, who, api):
    visitor = visit(who, java_script_enabled=False)
    page = visitor.goto("/new-agent")
    name = f"Plain {uuid.uuid4().hex[:6]}"
    page.fill("#id_name", name)
    page.fill("#id_instructions", "One\nTwo")
    page.click("text=Create and publish v1")
    expect(page.locator("h1")).to_have_text(name)
    agent = page.url.rsplit("/", 1)[1]

    page.fill("#id_instructions", "One\nTwo\nThree")
    open_section(page, "tools")
    page.check("input[name=tools][value=calculator]")
    page.click("text=Save draft")

    expect(page.locator(".toast")).to_contain_text("Draft v2 saved")
    assert stored(api, agent)["tools"] == ["calculator"]
    assert stored(api, agent)["instructions"] == "One\nTwo\nThree"
    page.fill("#id_description", "Plain and simple.")
    page.click("text=Review changes")
    expect(page.locator("#review")).to_contain_text("Plain and simple.")
    page.get_by_label("Message").fill("Described")
    expect(page.locator("text=Publish v3")).to_have_count(1 if who == "publisher" else 0)
    page.click("text=Continue editing")
    expect(page.locator("#id_description")).to_have_value("Plain and simple.")
    page.click("text=Review changes")
    page.click("text=Publish v3" if who == "publisher" else "text=Save draft")
    expect(page.locator(".toast")).to_contain_text("v3 is live" if who == "publisher" else "Draft v3 saved")
    assert stored(api, agent)["description"] == "Plain and simple."


def test_a_conflict_is_resolved_without_javascript(visit, fresh, api):
    page = visit(java_script_enabled=False).goto(f"/agents/{fresh}")
    page.fill("#id_instructions", "Mine")
    patch_agent(api, fresh, description="Theirs")

    page.click("text=Save draft")
    expect(page.locator("#conflict")).to_contain_text("saved v2 in the meantime")
    expect(page.locator("#id_instructions")).to_have_value("Mine")
    page.click("text=Save my changes on top of v2")

    expect(page.locator(".toast")).to_contain_text("Draft v3 saved")
    assert (stored(api, fresh)["description"], stored(api, fresh)["instructions"]) == ("Theirs", "Mine")


HOSTILE = """"><img src=x onerror=alert(1)></textarea><script>alert(2)</script>{{ 7*7 }}<svg onload=alert(3)>'"""


def test_markup_in_texts_is_escaped(visit, fresh, api):
    patch_agent(
        api,
        fresh,
        name=HOSTILE,
        description=HOSTILE,
        instructions=HOSTILE,
        model={"provider": HOSTILE, "name": HOSTILE, "x": HOSTILE},
        tools=[HOSTILE],
        workflows=[HOSTILE],
        agents=[HOSTILE],
        integrationTools=[HOSTILE],
        memory=HOSTILE,
        scorers={HOSTILE: {"sampling": {"type": "ratio", "rate": 0.5}}},
        inputProcessors=[{"key": HOSTILE}],
        metadata={HOSTILE: HOSTILE},
        defaultOptions={HOSTILE: HOSTILE},
        changeMessage=HOSTILE,
    )
    visitor = visit()

    page = visitor.goto(f"/agents/{fresh}")
    expect(page.locator("h1")).to_have_text(HOSTILE)
    expect(instructions(page)).to_contain_text("<script>alert(2)</script>")
    append_text(page, HOSTILE)
    page.get_by_role("button", name="Review changes").click()
    expect(page.locator("dialog[open]")).to_contain_text("onerror")
    page.keyboard.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)
    page.keyboard.press("Control+s")
    expect(page.locator(".toast")).to_contain_text("Draft v")
    visitor.goto("/?q=onerror")
    expect(page.locator(".snippet").first).to_be_visible()

    assert stored(api, fresh)["tools"] == [HOSTILE]
    assert visitor.console == []


# Counts the copies of the text into the form, and the elements that a key changes.
COUNT_WORK = """() => {
    window.copies = window.changes = 0;
    document.addEventListener("input", (event) => { if (event.target.id === "id_instructions") window.copies += 1; });
    new MutationObserver((records) => window.changes += records.length)
        .observe(document, {childList: true, subtree: true, characterData: true, attributes: true});
}"""
TYPE = """async (count) => {
    for (let number = 0; number < count; number += 1) {
        document.execCommand("insertText", false, "x");
        await new Promise(requestAnimationFrame);
    }
    return [window.copies, window.changes];
}"""


def test_a_key_in_211_kb_of_instructions_changes_only_lines_in_view(visit, fresh, api):
    text = "Answer every guest in the order of arrival, {{name}}.\n" * 4000
    patch_agent(api, fresh, instructions=text)
    page = visit().goto(f"/agents/{fresh}")
    expect(page.locator("#id_instructions_counter")).to_contain_text(f"{len(text):,} characters")
    instructions(page).press("Control+End")
    page.evaluate(COUNT_WORK)

    copies, changes = page.evaluate(TYPE, 8)

    assert copies < 8  # the text is copied after the last key, not at each one
    assert changes < 8 * 200  # of 4,000 lines
    assert page.locator("#instructions .cm-line").count() < 200
    expect(page.locator("#id_instructions_counter")).to_contain_text(f"{len(text) + 8:,} characters")
    page.keyboard.type("y")
    page.keyboard.press("Control+s")
    expect(page.locator(".toast")).to_contain_text("Draft v3 saved")
    assert stored(api, fresh)["instructions"] == text + "x" * 8 + "y"
