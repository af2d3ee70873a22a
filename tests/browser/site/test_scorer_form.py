"""The form of a scorer hides the inputs that the chosen type does not use, but never one with an error."""

from playwright.sync_api import expect

PREFIX = "settings-check-settings"


def open_form(visit, kind):
    page = visit("editor").goto("/new-scorer")
    page.fill("[name=name]", "Refunds")
    page.select_option("[name=type]", kind)
    return page


def test_a_field_of_another_type_is_shown_with_its_error(visit):
    page = open_form(visit, "llm-judge")
    page.fill("[name=highest]", "high")
    page.select_option("[name=type]", "check")
    expect(page.locator("[name=highest]")).to_be_hidden()

    page.get_by_role("button", name="Save as draft").click()

    expect(page.locator("[name=highest]")).to_be_visible()
    expect(page.locator("#id_highest_error")).to_contain_text("Enter a number.")
    expect(page.locator("[name=lowest]")).to_be_hidden()


def test_a_setting_of_another_check_is_shown_with_its_error(visit):
    page = open_form(visit, "check")
    page.select_option(f"[name={PREFIX}-check]", '"called-tool"')
    page.fill(f"[name={PREFIX}-times]", "1.5")
    page.select_option(f"[name={PREFIX}-check]", '"no-tool-errors"')
    expect(page.locator(f"[name={PREFIX}-times]")).to_be_hidden()

    page.get_by_role("button", name="Save as draft").click()

    expect(page.locator(f"[name={PREFIX}-times]")).to_be_visible()
    expect(page.locator("#id_settings_error_0")).to_contain_text("integer")
    expect(page.locator(f"[name={PREFIX}-tool]")).to_be_hidden()


def test_settings_as_json_are_shown_with_their_error(visit):
    page = open_form(visit, "check")
    page.get_by_text("Settings as JSON").click()
    page.get_by_label("Save this JSON instead of the fields").check()
    page.fill("[name=settings]", "{")
    page.select_option("[name=type]", "llm-judge")
    expect(page.locator("[name=settings]")).to_be_hidden()

    page.get_by_role("button", name="Save as draft").click()

    expect(page.locator("[name=settings]")).to_be_visible()
    expect(page.locator("#id_settings_error")).to_be_visible()
