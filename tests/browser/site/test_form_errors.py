"""Errors of forms in a browser: at the field, beside the button, and with the focus on the first."""

import re
from typing import Any

from playwright.sync_api import expect


def test_the_editor_lists_its_errors_and_goes_to_the_first(visit: Any, agent: str):
    visitor = visit()
    page = visitor.goto(f"/agents/{agent}")
    page.get_by_label("Temperature").first.fill("hot")
    page.locator("#metadata > summary").click()
    page.get_by_role("button", name="Edit Metadata as JSON").click()
    page.get_by_role("textbox", name="Metadata (JSON)").press("Control+a")
    page.keyboard.type('{"team": 1,\n"floor": }')
    assert page.locator("form section.section section.section").count() == 0  # the other view replaced its field only
    page.get_by_role("textbox", name="Name", exact=True).fill("")
    page.keyboard.press("Control+s")

    summary = page.locator("[data-reason-of=agent-form]")
    expect(summary).to_have_text(re.compile("3 errors: Name, Temperature, Metadata"))
    expect(page.get_by_role("textbox", name="Name", exact=True)).to_be_focused()
    expect(page.locator("#id_name_error")).to_contain_text("required")
    summary.get_by_role("link", name="Temperature").press("Enter")
    expect(page.get_by_label("Temperature").first).to_be_focused()
    expect(page.locator("#id_temperature_error")).to_be_in_viewport()
    summary.get_by_role("link", name="Metadata").press("Enter")
    expect(page.locator("#id_metadata_editor")).to_be_focused()
    expect(page.locator("#id_metadata_error")).to_contain_text(re.compile("line 2, column 10", re.IGNORECASE))
    expect(page.locator("#metadata-fields .cm-activeLine")).to_have_text('"floor": }')
    assert [text for text in visitor.console if "422" not in text] == []


def test_the_error_of_a_row_stands_at_the_row(visit: Any, agent: str):
    page = visit().goto(f"/agents/{agent}")
    page.locator("#metadata > summary").click()
    metadata = page.locator("#metadata-fields")
    metadata.get_by_role("button", name="Add a row").click()
    row = metadata.locator("[data-row]").last
    row.get_by_label("Name").fill("floor")
    row.get_by_label("Kind of value").select_option(label="Number")
    row.locator("textarea").fill("third")
    page.keyboard.press("Control+s")

    expect(row.locator("[data-row-error]")).to_have_text("“floor”: This must be a number, such as 0.7.")
    expect(row.locator("textarea")).to_be_focused()
    expect(row.locator("textarea")).to_have_attribute("aria-invalid", "true")
    expect(page.locator("[data-reason-of=agent-form]")).to_have_text("1 error: Metadata")
    row.locator("textarea").fill("3")
    page.keyboard.press("Control+s")
    expect(page.locator(".toast")).to_contain_text("Draft v4 saved")
    expect(metadata.locator("[data-row-error], [data-row] [aria-invalid]")).to_have_count(0)


def test_a_form_without_htmx_has_its_errors_at_the_fields(visit: Any):
    page = visit().goto("/account/password")

    page.locator("main form button[type=submit]").first.click()

    expect(page.locator("main [data-error-of]:not([hidden])").first).to_contain_text("required")
    expect(page.locator("main form [data-reason-of]")).to_contain_text("errors")
    assert page.evaluate("document.activeElement.matches('main input[aria-invalid=true]')")
