"""The editor in a browser."""

import re
import uuid

import pytest
from playwright.sync_api import expect

from tests.browser.agents.editor_page import append_text, instructions, open_section, stored
from tests.browser.conftest import live_number, patch_agent


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
    page.evaluate("navigator.clipboard.writeText = undefined")  # as over HTTP
    conflict.get_by_role("button", name="Copy my text").click()
    expect(conflict.get_by_label("My changes as text")).to_be_focused()
    assert "Mine." in page.evaluate("getSelection().toString()")

    conflict.get_by_role("button", name="Save my changes on top of v2").click()
    expect(page.locator("#agent-title")).to_contain_text("Draft ahead by 2")
    expect(page.locator("#conflict")).to_have_count(0)
    after = stored(api, fresh)
    assert after["description"] == "Theirs"
    assert after["instructions"].endswith("Mine.")


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
    page.keyboard.press("Enter")  # adds the first result, unless somebody types on before it comes
    page.keyboard.type("calculator")
    expect(page.locator("#tools-options [data-option]")).to_have_count(1)
    expect(page.locator("#tools-picker [data-row]")).to_have_count(0)
    assert len(earlier) == 1
    earlier[0].continue_()
    page.evaluate("new Promise((resolve) => setTimeout(resolve, 300))")
    assert page.locator("#tools-options [data-option]").count() == 1


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
