"""The form of a scorer hides the inputs that the chosen type does not use, but never one with an error."""

from playwright.sync_api import expect

PREFIX = "settings-check-settings"


def open_form(visitor, kind):
    page = visitor.goto("/new-scorer")
    page.fill("[name=name]", "Refunds")
    page.select_option("[name=type]", kind)
    return page


def test_prompts_of_a_pipeline_have_room(visit):
    page = open_form(visit("editor"), "pipeline")
    page.locator("summary", has_text="Analyze").click()
    function, prompt = (page.locator(f"[name=settings-pipeline-analyze-{name}]") for name in ("function", "prompt"))

    assert prompt.evaluate("box => box.clientHeight / parseFloat(getComputedStyle(box).lineHeight)") >= 4
    assert prompt.bounding_box()["width"] > 1.8 * function.bounding_box()["width"]


def test_a_setting_of_another_check_is_shown_with_its_error(visit):
    visitor = visit("editor")
    page = open_form(visitor, "check")
    page.select_option(f"[name={PREFIX}-check]", '"called-tool"')
    page.fill(f"[name={PREFIX}-times]", "1.5")
    page.select_option(f"[name={PREFIX}-check]", '"no-tool-errors"')
    expect(page.locator(f"[name={PREFIX}-times]")).to_be_hidden()

    page.keyboard.press("Control+s")

    expect(page.locator(f"[name={PREFIX}-times]")).to_be_visible()
    expect(page.locator("#id_settings_error_0")).to_contain_text("whole number")
    expect(page.locator(f"[name={PREFIX}-tool]")).to_be_hidden()
    page.get_by_role("link", name="Cancel").click()  # asks first: what the page shows again was not saved
    expect(page).to_have_url(f"{visitor.base_url}/new-scorer")
    assert visitor.console[-1].startswith("dialog:")
