"""The history in a browser."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import activate, create_agent, live_number, patch_agent


def history(agent):
    return f"/agents/{agent}/versions"


def test_comparing_publishing_and_undo_need_no_reload(visit, agent, api):
    visitor = visit()
    page = visitor.goto(history(agent))
    page.evaluate("window.notReloaded = true")

    page.click("#activate-1")
    dialog = page.locator("dialog[open]")
    expect(dialog.get_by_role("heading")).to_have_text("Publish v1?")
    dialog.get_by_role("button", name="Publish v1 (replaces v3)").click()

    expect(page.locator("#version-1 .chip-live")).to_be_visible()
    expect(page.locator("#agent-title .chip-live")).to_contain_text("Live v1")
    expect(page.locator("dialog[open]")).to_have_count(0)
    assert live_number(api, agent) == 1

    page.locator(".toast", has_text="v1 is live").get_by_role("button", name="Undo").click()
    expect(page.locator("#version-3 .chip-live")).to_be_visible()
    expect(page.locator(".toast", has_text="v3 is live again")).to_be_visible()
    assert live_number(api, agent) == 3
    assert page.evaluate("window.notReloaded")
    assert visitor.console == []


def test_two_selected_versions_are_compared_step_by_step(visit, agent):
    visitor = visit()
    page = visitor.goto(history(agent))

    expect(page.get_by_role("button", name="Compare")).to_be_disabled()
    for number in (3, 2, 1):  # the third selection replaces the first
        page.check(f"#pair-{number}")
    expect(page.locator("#pair-3")).not_to_be_checked()
    page.check("#pair-3")
    page.get_by_role("button", name="Compare").click()

    expect(page).to_have_title("v1 and v3 of Night porter · Agent CMS")
    expect(page.locator("[data-change-position]")).to_have_text("3 changes")
    page.keyboard.press("n")
    page.keyboard.press("n")
    expect(page.locator("[data-change-position]")).to_have_text("2 of 3")
    page.keyboard.press("p")
    expect(page.locator("[data-change-position]")).to_have_text("1 of 3")

    page.keyboard.press("?")
    page.get_by_label("Use the keys without").uncheck()
    page.keyboard.press("Escape")
    page.reload()
    expect(page.locator("[data-change-position]")).to_have_text("3 changes")
    page.keyboard.press("n")
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_hidden()
    expect(page.locator("[data-change-position]")).to_have_text("3 changes")
    assert visitor.console == []


def test_a_version_is_restored_from_a_comparison(visit, agent, api):
    page = visit().goto(f"/agents/{agent}/versions/compare?from=1&to=live")

    page.click("#restore-1")
    page.get_by_role("button", name="Restore and publish (replaces v3)").click()

    expect(page.locator(".toast")).to_contain_text("v4 is live, restored from v1.")
    expect(page.get_by_text("No differences")).to_be_visible()
    assert live_number(api, agent) == 4


def test_a_dialog_is_refused_when_the_live_version_changed(visit, agent, api):
    page = visit().goto(history(agent))
    page.click("#activate-1")
    page.fill("dialog[open] textarea", "Because")
    activate(api, agent, 2)

    page.get_by_role("button", name="Publish v1 (replaces v3)").click()

    expect(page.get_by_role("alert")).to_contain_text("changed since you opened this dialog")
    expect(page.locator("dialog[open] textarea")).to_have_value("Because")
    assert live_number(api, agent) == 2
    page.get_by_role("button", name="Publish v1 (replaces v2)").click()
    expect(page.locator("#version-1 .chip-live")).to_be_visible()
    assert live_number(api, agent) == 1


def test_the_history_is_used_by_keyboard(visit, agent, api):
    page = visit().goto(history(agent))

    def tab_to(element_id):
        for _ in range(80):
            if page.evaluate("document.activeElement.id") == element_id:
                return
            page.keyboard.press("Tab")
        raise AssertionError(f"{element_id} is not reached by Tab")

    tab_to("activate-1")
    page.keyboard.press("Enter")
    expect(page.locator("dialog[open]")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)
    assert page.evaluate("document.activeElement.id") == "activate-1", "the focus goes back"

    page.keyboard.press("Enter")
    expect(page.locator("dialog[open]")).to_be_visible()
    for _ in range(10):
        if page.evaluate("document.activeElement.textContent").startswith("Publish v1 (replaces"):
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")

    expect(page.locator("#version-1 .chip-live")).to_be_visible()
    assert live_number(api, agent) == 1
    page.wait_for_function("document.activeElement !== document.body")

    tab_to("more-2")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    expect(page.locator("#version-2 .menu")).not_to_have_attribute("open", "")


def test_a_row_is_one_line_and_shows_its_actions_on_hover_and_focus(visit, agent):
    visitor = visit()
    visitor.page.set_viewport_size({"width": 1440, "height": 900})
    page = visitor.goto(history(agent))
    row, acts = page.locator("#version-1"), page.locator("#version-1 .timeline-acts")

    assert all(item.bounding_box()["height"] < 48 for item in page.locator(".timeline-item").all())
    page.mouse.move(5, 5)
    expect(acts).to_have_css("opacity", "0")
    row.hover()
    expect(acts).to_have_css("opacity", "1")
    page.mouse.move(5, 5)
    page.focus("#restore-1")
    expect(acts).to_have_css("opacity", "1")
    row.locator(".timeline-change > summary").click()
    expect(row.locator(".timeline-details")).to_contain_text("Saved on")
    assert visitor.console == []


def test_naming_a_version_is_visible_at_once(visit, agent):
    visitor = visit("editor")
    page = visitor.goto(history(agent))

    page.click("#more-2")
    page.locator("#version-2").get_by_role("link", name="Edit name, message and pin").click()
    page.fill("dialog[open] [name=name]", "Warm words")
    page.check("dialog[open] [name=pinned]")
    page.keyboard.press("Control+s")

    expect(page.locator("#version-2 .name")).to_have_text("Warm words")
    expect(page.locator("#version-2 .chip-pinned")).to_be_visible()
    assert visitor.console == []


def test_a_draft_is_discarded_and_restored(visit, agent, api):
    patch_agent(api, agent, description="Half an idea", autoPublish=False)
    page = visit("editor").goto(history(agent))

    page.locator("#agent-actions summary").click()
    page.click("#discard")
    page.get_by_role("button", name="Discard draft v4").click()
    expect(page.locator("#history .chip-draft")).to_have_count(0)
    expect(page.locator("#agent-title .chip-draft")).to_have_count(0)
    page.locator(".toast", has_text="Draft v4 discarded").get_by_role("button", name="Undo").click()

    expect(page.locator("#version-5 .chip-draft")).to_be_visible()
    assert live_number(api, agent) == 3


def test_an_editor_sees_why_they_cannot_publish(visit, agent):
    visitor = visit("editor")

    page = visitor.goto(history(agent))
    expect(page.locator(".limits")).to_contain_text("Publishing needs the Publisher role")
    expect(page.locator("#activate-1")).to_have_count(0)

    page = visitor.goto(f"{history(agent)}/1/activate")
    expect(page.locator("main")).to_contain_text("This needs the Publisher role")
    expect(page.get_by_role("button", name="Publish v1 (replaces v3)")).to_be_disabled()


def test_a_second_tab_shows_the_current_state(visit, agent):
    visitor = visit()
    first = visitor.goto(history(agent))
    second = visitor.open()
    second.goto(first.url)

    first.click("#activate-1")
    first.get_by_role("button", name="Publish v1 (replaces v3)").click()

    expect(second.locator("#version-1 .chip-live")).to_be_visible()
    expect(second.locator(".toast")).to_have_count(0)
    assert visitor.console == []


def test_the_history_works_without_javascript(visit, agent, api):
    patch_agent(
        api, agent, instructions="\n".join(["Be kind.", *(f"Rule {number}" for number in range(40)), "Be brief."])
    )
    patch_agent(
        api, agent, instructions="\n".join(["Be kind.", *(f"Rule {number}" for number in range(40)), "Be short."])
    )
    page = visit(java_script_enabled=False).goto(history(agent))

    page.check("#pair-4")
    page.check("#pair-5")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_text("Rule 7", exact=True)).to_have_count(0)
    page.get_by_role("link", name="unchanged lines").click()
    expect(page.get_by_text("Rule 7", exact=True)).to_have_count(2)

    page.get_by_role("link", name="Publish v4").click()
    page.get_by_role("button", name="Publish v4 (replaces v5)").click()
    expect(page.locator(".toast")).to_contain_text("v4 is live.")
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(page.locator(".toast")).to_contain_text("v5 is live again.")

    page.click("#restore-1")
    page.get_by_role("button", name="Restore and publish (replaces v5)").click()
    expect(page.locator(".toast")).to_contain_text("v6 is live, restored from v1.")
    assert live_number(api, agent) == 6


def test_a_fold_opens_in_place(visit, agent, api):
    lines = [f"Rule {number}" for number in range(60)]
    patch_agent(api, agent, instructions="\n".join([*lines, "Be brief."]))
    patch_agent(api, agent, instructions="\n".join([*lines, "Be short."]))
    visitor = visit()
    page = visitor.goto(f"/agents/{agent}/versions/compare?from=4&to=5")

    page.get_by_role("link", name="unchanged lines").click()

    expect(page.get_by_text("Rule 7", exact=True)).to_have_count(2)
    assert "unfold" not in page.url
    assert visitor.console == []


HOSTILE = (
    """<script>console.log('in')</script><img src=x onerror="console.log('in')">"'</textarea></title>{{7}}\u202e"""
)


@pytest.mark.parametrize("layout", ["sides", "unified"])
def test_markup_in_texts_is_escaped_without_console_errors(visit, api, agent, layout):
    fields = {
        "name": HOSTILE[:200],
        "description": HOSTILE,
        "instructions": f"{HOSTILE}\n{HOSTILE}",
        "tools": [HOSTILE],
        "memory": HOSTILE,
        "metadata": {HOSTILE: [HOSTILE]},
        "defaultOptions": {"__proto__": HOSTILE},
        "inputProcessors": [{"key": HOSTILE}],
        "scorers": {HOSTILE: {}},
        "changeMessage": HOSTILE,
        "model": {"provider": HOSTILE, "name": HOSTILE},
    }
    patch_agent(api, agent, **fields)
    visitor = visit()
    page = visitor.goto(history(agent))
    page.click("#more-4")
    page.locator("#version-4").get_by_role("link", name="Edit name, message and pin").click()
    page.fill("dialog[open] [name=name]", HOSTILE[:100])
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("#version-4 .name")).to_contain_text("<script>")

    for path in (
        history(agent),
        f"{history(agent)}/4",
        f"{history(agent)}/compare?from=1&to=4&layout={layout}",
        f"{history(agent)}/4/restore",
        f"/agents/{agent}/live-history",
    ):
        page = visitor.goto(path)
        page.wait_for_load_state("networkidle")
        assert page.locator("img[src=x]").count() == 0
    page = visitor.goto(history(agent))
    page.click("#activate-1")
    expect(page.locator("dialog[open]")).to_be_visible()
    assert visitor.console == []


def test_200_kb_of_instructions_are_compared_step_by_step(visit, api):
    agent = "huge-text"
    lines = [f"{number}. Answer politely, and name case {number} in the first line of it." for number in range(3200)]
    create_agent(api, agent, instructions="\n".join(lines))
    patch_agent(api, agent, instructions="\n".join(line.replace("politely", "promptly") for line in lines))
    visitor = visit()

    page = visitor.goto(f"/agents/{agent}/versions/compare?from=1&to=2")

    took = page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
    assert len("\n".join(lines)) > 200_000
    assert took < 15_000
    page.keyboard.press("n")
    expect(page.locator("[data-change-position]")).to_contain_text("1 of")
    assert visitor.console == []


def test_exact_times_are_in_the_zone_and_the_locale_of_the_reader(visit, agent):
    page = visit(timezone_id="Asia/Kolkata", locale="de-DE").goto(history(agent))

    details = page.locator(".timeline-details").first

    saved = page.evaluate(
        """time => new Intl.DateTimeFormat("de-DE", {dateStyle: "long", timeStyle: "long", timeZone: "Asia/Kolkata"})
          .format(new Date(time))""",
        details.locator("time").get_attribute("datetime"),
    )
    assert f"Saved on {saved}." in details.text_content()
