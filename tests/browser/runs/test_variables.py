"""Variables, saved questions and marked differences of the playground in a browser."""

import uuid
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import create_agent, patch_agent

SCHEMA = {
    "properties": {"company": {"description": "Who booked."}, "tone": {"default": "calm"}},
    "required": ["company"],
}


@pytest.fixture
def desk(api: Any) -> str:
    """Return the id of an agent with variables, whose draft has one more."""
    agent_id = f"desk-{uuid.uuid4().hex[:8]}"
    create_agent(api, agent_id, instructions="Help {{company}} {{tone}}.", requestContextSchema=SCHEMA)
    patch_agent(api, agent_id, instructions="Help {{company}} {{tone}} in {{city}}.", autoPublish=False)
    return agent_id


def test_variables_are_filled_in_by_keyboard_and_kept_with_an_input(visit, desk):
    visitor = visit()
    page = visitor.goto(f"/agents/{desk}/try")
    company, city = page.get_by_label("company"), page.get_by_label("city")
    page.get_by_label("Message").fill("Good evening")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Enter a value for company.")).to_be_visible()
    expect(company).to_be_focused()
    assert page.locator("[data-answer]").count() == 0

    company.fill("Nordwind")
    city.fill("Ulm")
    page.keyboard.press("Control+Enter")

    first, second = page.locator("[data-answer]").nth(0), page.locator("[data-answer]").nth(1)
    expect(first).to_contain_text("begin: Help Nordwind calm.")
    expect(second).to_contain_text("begin: Help Nordwind calm in Ulm.")
    expect(city).to_be_focused()
    expect(page.get_by_text("Enter a value for company.")).to_be_hidden()
    expect(page.locator("[aria-busy]")).to_have_count(0)

    page.get_by_role("button", name="Mark differences").click()
    expect(page.locator("mark")).to_have_text(" in Ulm")
    expect(second).to_contain_text("2 words differ from live (v1)")
    page.get_by_label("tone").fill("loudly")
    page.keyboard.press("Control+Enter")
    expect(first).to_contain_text("loudly")
    expect(page.locator("mark")).to_have_text(" in Ulm")  # marked again, once both answers are finished

    page.get_by_role("button", name="Save as input").first.click()
    expect(page.get_by_text("Input Good evening saved.")).to_be_visible()
    company.fill("Other")
    page.get_by_label("Message").fill("Other")
    page.locator("#inputs summary").press("Enter")
    page.get_by_role("link", name="Good evening").press("Enter")
    expect(page.get_by_label("Message")).to_have_value("Good evening")
    expect(company).to_have_value("Nordwind")
    expect(page.get_by_label("tone")).to_have_value("loudly")
    assert [message for message in visitor.console if "422" not in message] == []


def test_a_stopped_answer_is_announced_as_stopped(visit, slow, ask):
    page = ask(visit(), slow)
    expect(page.locator(".answer-text").last).to_contain_text("I am the demo model")

    page.get_by_role("button", name="Stop").click()

    expect(page.locator("#run-announcement")).to_have_text("Answer of v2: stopped.")


def test_time_tokens_and_cost_of_columns_of_different_length_are_in_one_row(visit, desk):
    visitor = visit()
    page = visitor.goto(f"/agents/{desk}/try?columns=live,draft")
    page.get_by_label("company").fill("Nordwind")
    page.get_by_label("city").fill("a very long name of a city " * 60)
    page.get_by_label("Message").fill("Hello")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("link", name="Open the run")).to_have_count(2)

    tops = [foot.bounding_box()["y"] for foot in page.locator(".answer-foot").all()]

    assert abs(tops[0] - tops[1]) < 2, tops
    expect(page.locator(".figures").first).to_contain_text("$0")
    assert visitor.console == []
