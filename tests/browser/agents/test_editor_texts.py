"""Texts in the editor: their preview, markup in them, and large ones."""

import pytest
from playwright.sync_api import expect

from tests.browser.agents.editor_page import append_text, instructions, stored
from tests.browser.conftest import patch_agent


def test_instructions_are_previewed_with_values_and_expanded(visit, fresh, api):
    visitor = visit()
    page = visitor.goto(f"/agents/{fresh}")
    append_text(page, " Say hello to {{guest || 'everybody'}} in {{language}}.")
    expect(page.locator(".variable-list li")).to_have_text(["guest default: everybody", "language"])
    page.locator(".declared-variables summary").click()
    page.get_by_role("button", name="Declare a variable").click()
    page.keyboard.type("language")
    page.get_by_role("textbox", name="Default", exact=True).fill("French")

    button = page.get_by_role("button", name="Preview with values")
    page.evaluate("document.documentElement.removeAttribute('data-scripts')")  # as if they were blocked
    expect(button).to_be_hidden()
    page.evaluate("document.documentElement.toggleAttribute('data-scripts', true)")
    button.click()
    page.get_by_role("textbox", name="guest").fill("Ada")
    preview = page.get_by_role("region", name="Instructions with values")
    expect(preview).to_contain_text("Say hello to Ada in French.")

    page.get_by_role("button", name="Expand").press("Enter")
    box = page.locator("#instructions").bounding_box()
    assert (box["x"], box["y"], box["width"], box["height"]) == (0, 0, 1280, 900)
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Go to")).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Expand")).to_be_focused()
    assert page.locator("[inert]").count() == 0
    page.keyboard.press("Control+s")
    expect(page.locator(".toast")).to_contain_text("Draft v2 saved")
    assert stored(api, fresh)["requestContextSchema"] == {"properties": {"language": {"default": "French"}}}
    assert visitor.console == []


LEFT_OF_TEXT = """(line) => {
  const range = document.createRange();
  range.selectNodeContents(line);
  return range.getBoundingClientRect().x;
}"""


@pytest.mark.parametrize("width", [390, 1440])
def test_the_text_stays_in_its_place_when_the_editor_replaces_the_textarea(visit, fresh, api, width):
    """On a phone neither has an empty column in the place of line numbers."""
    patch_agent(api, fresh, instructions="Greet every guest by name. " * 40)
    visitor = visit()
    visitor.page.set_viewport_size({"width": width, "height": 844})
    page = visitor.goto(f"/agents/{fresh}")
    textarea = page.locator("#id_instructions")
    left = textarea.evaluate(
        "(area) => area.getBoundingClientRect().x + parseFloat(getComputedStyle(area).paddingLeft)"
    )
    below = page.locator("#model").bounding_box()["y"]

    textarea.focus()
    line = page.locator("#instructions .cm-line").first
    line.wait_for()

    assert abs(line.evaluate(LEFT_OF_TEXT) - left) <= 1
    assert abs(page.locator("#model").bounding_box()["y"] - below) <= 1
    assert (left < 40) == (width == 390)


TEXT_ROOM = """(select) => {
  const style = getComputedStyle(select);
  const context = document.createElement("canvas").getContext("2d");
  context.font = style.font;
  const room = select.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  return room - context.measureText(select.selectedOptions[0].textContent).width;
}"""


def test_the_choices_of_a_memory_are_not_cut_off(visit, fresh, api):
    patch_agent(api, fresh, memory={"options": {"workingMemory": {"enabled": True}, "semanticRecall": True}})
    visitor = visit()
    visitor.page.set_viewport_size({"width": 1440, "height": 900})
    page = visitor.goto(f"/agents/{fresh}")

    for select in page.locator("#memory .memory-inputs select:visible").all():
        assert select.evaluate(TEXT_ROOM) >= 0, select.get_attribute("name")


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
