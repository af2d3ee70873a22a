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
    page.keyboard.type('{"team": 1,\n"flo\N{GRINNING FACE}r": }')
    expect(page.locator("#metadata")).to_contain_text("Line 2, column 10")  # characters, as the server counts them
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
    page.keyboard.type("2")
    expect(page.locator("#metadata-fields .cm-activeLine")).to_have_text('"flo\N{GRINNING FACE}r": 2}')
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


def test_a_new_agent_lists_its_errors_once(visit: Any):
    page = visit().goto("/new-agent")  # its form has a field with the name "id"
    page.get_by_label("Name", exact=True).fill("Greeter")
    page.get_by_label("Temperature").first.fill("hot")

    page.get_by_role("button", name="Create and publish v1").click()

    expect(page.locator("[data-reason-of=agent-form]")).to_have_text("1 error: Temperature")
    expect(page.locator("[data-reason-of='']")).to_have_count(0)


def test_the_error_of_a_variant_stands_at_its_input(visit: Any, agent: str):
    page = visit().goto(f"/agents/{agent}")
    page.locator("#variants > summary").click()
    page.get_by_text("Add a model variant").click()
    new = page.locator(".variant-new[open]")
    new.get_by_label("Provider", exact=True).fill("demo")
    new.get_by_label("Model", exact=True).fill("echo")
    new.get_by_label("Temperature").fill("hot")
    page.locator("#variants > summary").click()
    page.keyboard.press("Control+s")

    message = "Model, variant 1: Temperature must be a number, such as 0.7."
    expect(new.locator("[data-row-error]").first).to_have_text(message)
    expect(new.get_by_label("Temperature")).to_be_focused()
    expect(new.get_by_label("Temperature")).to_have_accessible_description(message)
    expect(new.get_by_label("Fact of condition 1 of the new variant of model")).to_have_attribute(
        "aria-invalid", "true"
    )
    expect(page.locator("[data-reason-of=agent-form]")).to_have_text("1 error: Variants")
    new.get_by_label("Temperature").fill("0.5")
    new.get_by_label("Fact of condition 1 of the new variant of model").fill("tier")
    page.keyboard.press("Control+s")
    expect(page.locator(".toast")).to_contain_text("Draft v4 saved")
    expect(page.locator("[data-row-error], #variants [aria-invalid]")).to_have_count(0)


def test_the_error_of_a_background_task_stands_at_its_input(visit: Any, agent: str, api: Any):
    api.patch(f"/api/stored/agents/{agent}", json={"tools": ["calculator"]}).raise_for_status()
    page = visit().goto(f"/agents/{agent}")
    page.locator("#background-tasks > summary").click()
    tasks = page.locator("#background-tasks")
    tasks.get_by_label("Runs").select_option(index=1)
    tasks.get_by_label("Retries").fill("many")
    page.keyboard.press("Control+s")

    expect(tasks.get_by_label("Retries")).to_be_focused()
    expect(tasks.locator("[data-row-error]")).to_contain_text("The retries of calculator are not a whole number.")
    expect(tasks.locator("[data-row-error]")).to_have_count(1)


def test_the_error_of_an_option_of_the_memory_stands_at_its_input(visit: Any, agent: str):
    page = visit().goto(f"/agents/{agent}")
    page.locator("#memory > summary").click()
    memory = page.locator("#memory")
    memory.get_by_label("Memory", exact=True).select_option(label="Options of this agent")
    memory.get_by_label("Last messages", exact=True).fill("-1")
    page.keyboard.press("Control+s")

    expect(memory.get_by_label("Last messages", exact=True)).to_be_focused()
    expect(memory.locator("[data-row-error]")).to_contain_text("This must be a whole number from 0 to 1,000")
    memory.get_by_label("Last messages", exact=True).fill("5")
    page.keyboard.press("Control+s")
    expect(page.locator(".toast")).to_contain_text("saved")
    expect(memory.get_by_label("Last messages", exact=True)).to_have_accessible_description("Enter false for none.")
