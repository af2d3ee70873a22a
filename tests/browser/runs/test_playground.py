"""The playground in a browser."""

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import create_agent, patch_agent

STORY_ENDS = "you bring along."
SLOW = {"timeout": 60_000}


def answers(page: Any) -> Any:
    return page.locator("[data-answer]")


def test_two_versions_answer_side_by_side(visit, agent, ask):
    visitor = visit()

    page = ask(visitor, agent, "Who is there?", "v1,v2")

    texts = page.locator(".answer-text").filter(has_text="My instructions begin")
    expect(texts).to_have_count(2)
    expect(page.locator("[aria-busy]")).to_have_count(0)
    assert [re.sub(r"\s+", " ", text).partition("begin: ")[2] for text in texts.all_inner_texts()] == [
        "Greet guests.",
        "Greet guests warmly.",
    ]
    assert page.locator(".answer-stamp .version").all_inner_texts() == ["v1", "v2"]
    expect(page.locator(".figures").first).to_contain_text(re.compile(r"\d s.*\d+ tokens", re.DOTALL))
    assert "columns=v1,v2&runs=" in page.url
    assert visitor.console == []


def test_an_answer_is_streamed_and_can_be_stopped(visit, slow, ask):
    visitor = visit()

    page = ask(visitor, slow)

    text = page.locator(".answer-text").last
    expect(text).to_contain_text("Once, in a house")
    expect(page.locator("[data-elapsed]")).to_have_text(re.compile(r"^\d+(\.\d)? s$"))
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".answer-end", has_text="Stopped.")).to_be_visible()
    expect(page.locator("[data-answer]")).to_be_focused()
    expect(page.locator(".answer-text").last).to_contain_text("Once, in a house")
    assert STORY_ENDS not in page.locator("[data-answer]").inner_text()
    assert visitor.console == []


def test_all_columns_are_stopped_together(visit, slow, ask):
    page = ask(visit(), slow, columns="live,v1,v2")
    expect(page.locator("[aria-busy]")).to_have_count(3)
    page.route("**/stop", lambda route: route.abort(), times=3)
    page.get_by_role("button", name="Stop all").click()
    expect(page.locator(".toast-fault")).to_contain_text("cannot be reached")
    expect(page.locator("[data-stop]:enabled")).to_have_count(3)

    page.get_by_role("button", name="Stop all").click()

    expect(page.locator(".answer-end", has_text="Stopped.")).to_have_count(3)
    expect(page.locator("[data-answer]").first).to_be_focused()
    expect(page.get_by_role("button", name="Stop all")).to_be_hidden()


def test_the_button_that_runs_all_stays_in_its_place_on_a_phone(visit, slow, ask):
    visitor = visit()
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    page = visitor.goto(f"/agents/{slow}/try?columns=live,v1")
    run = page.get_by_role("button", name="Run all")
    before = run.bounding_box()

    page.get_by_label("Message").fill("Who is there?")
    run.click()
    expect(page.get_by_role("button", name="Stop all")).to_be_visible()

    assert run.bounding_box() == before


def test_a_reload_during_an_answer_loses_and_repeats_nothing(visit, api, slow, ask):
    patch_agent(api, slow, model={"provider": "demo", "name": "storyteller", "delay": 0.02})
    visitor = visit()
    page = ask(visitor, slow, "the sea")
    expect(page.locator(".answer-text").last).to_contain_text("Nobody there knew")

    page.reload()

    expect(page.locator(".answer-text").last).to_contain_text(STORY_ENDS, **SLOW)
    text = page.locator(".answer-text").last.inner_text()
    expect(page.locator("[aria-busy]")).to_have_count(0)
    assert page.locator(".answer-text").last.inner_text() == text
    sentences = re.split(r"(?<=\.) ", text)
    assert len(sentences) == len(set(sentences)) > 8
    assert visitor.console == []


def test_tool_calls_can_be_unfolded(visit, api, ask):
    create_agent(api, "counter", tools=["word-count"])
    visitor = visit()

    page = ask(visitor, "counter", 'use word-count {"text": "one two three"}')

    call = page.locator("details.call")
    expect(call).to_have_attribute("data-state", "done")
    expect(call.locator("[data-call-arguments]")).to_be_hidden()
    expect(page.locator("[aria-busy]")).to_have_count(0)
    call.locator("summary").press("Enter")
    expect(call.locator("[data-call-arguments]")).to_contain_text("one two three")
    expect(call.locator("[data-call-result]")).to_have_text("3")
    assert visitor.console == []


def test_streamed_markup_is_escaped(visit, agent, ask):
    visitor = visit()
    evil = "<img src=x onerror=alert(1)><b>bold</b>"

    page = ask(visitor, agent, evil)

    expect(page.locator(".answer .answer-text").first).to_contain_text(evil)
    expect(page.locator("[aria-busy]")).to_have_count(0)
    expect(page.locator(".answer .answer-text").first).to_contain_text(evil)
    assert page.locator("main b, main img").count() == 0
    assert visitor.console == []


def test_unsaved_text_runs_beside_live_and_returns_to_the_editor(visit, agent):
    visitor = visit()
    page = visitor.goto(f"/agents/{agent}")
    page.get_by_role("textbox", name="Instructions").press("Control+Home")
    page.keyboard.type("Sing. ")
    page.get_by_role("link", name="Playground", exact=True).click()

    page.wait_for_url("**/try?columns=live,unsaved*")
    expect(page.get_by_text("Cannot run.")).to_have_count(0)
    page.get_by_label("Message").fill("Hello")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".answer-text").filter(has_text="begin: Sing. Greet guests warmly.")).to_have_count(1)
    expect(page.locator("[aria-busy]")).to_have_count(0)
    assert page.locator(".answer-stamp .version").all_inner_texts() == ["v3", "unsaved text"]

    page.get_by_role("link", name="Edit", exact=True).click()
    expect(page.locator("[name=instructions]")).to_have_value("Sing. Greet guests warmly.\nAnswer briefly.")
    expect(page.get_by_text("Unsaved", exact=True)).to_be_visible()
    assert visitor.console == []


def test_text_typed_in_one_tab_runs_in_another(visit, agent, ask):
    visitor = visit()
    editor = visitor.goto(f"/agents/{agent}")
    other = visitor.open()
    other.goto(f"{visitor.base_url}/agents/{agent}/try")
    choice = other.get_by_label("Version in column 1")
    expect(choice.get_by_role("option", name="Unsaved text")).to_be_disabled()

    editor.get_by_role("textbox", name="Instructions").press("Control+Home")
    editor.keyboard.type("Sing. ")

    expect(choice.get_by_role("option", name="Unsaved text")).to_be_enabled()
    choice.select_option("unsaved")
    other.get_by_label("Message").fill("Hello")
    other.keyboard.press("Control+Enter")
    expect(other.locator(".answer-text").last).to_contain_text("begin: Sing. Greet")
    assert visitor.console == []


def test_a_conversation_continues(visit, api, ask):
    create_agent(api, "rememberer", memory="last-messages")
    visitor = visit()
    page = ask(visitor, "rememberer", "I am Ann.")
    expect(page.locator(".answer-text").last).to_contain_text("You said: I am Ann.")
    expect(page.get_by_label("Message")).to_have_value("")
    expect(page.locator("[aria-busy]")).to_have_count(0)
    expect(page.get_by_text("Open the run")).to_be_visible()

    page.get_by_label("Message").fill("Who am I?")
    page.keyboard.press("Control+Enter")

    expect(page.locator(".answer-text").last).to_contain_text("Before that: I am Ann.")
    expect(page.locator(".sent-message")).to_have_text(["I am Ann.", "Who am I?"])
    page.get_by_role("button", name="New conversation").click()
    expect(page.locator(".sent-message")).to_have_count(0)
    assert visitor.console == []


def test_inputs_are_saved_and_run_again_by_keyboard(visit, agent):
    visitor = visit()
    page = visitor.goto(f"/agents/{agent}/try")
    page.get_by_label("Message").fill("Good evening")
    page.locator("#inputs summary").press("Enter")
    page.get_by_label("Name for this input").fill("Evening")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Input Evening saved.")).to_be_visible()

    page.get_by_label("Message").fill("Something else")
    page.locator("#inputs summary").press("Enter")
    page.get_by_role("link", name="Evening").press("Enter")

    expect(page.get_by_label("Message")).to_have_value("Good evening")
    expect(page.get_by_label("Message")).to_be_focused()
    page.locator("#inputs summary").press("Enter")
    page.get_by_role("button", name="Remove Evening").press("Enter")
    expect(page.get_by_text("Input removed.")).to_be_visible()
    expect(page.get_by_role("link", name="Evening")).to_have_count(0)
    assert visitor.console == []


def test_columns_are_added_and_removed_during_an_answer(visit, slow, ask):
    visitor = visit()
    page = ask(visitor, slow, "the sea")
    expect(page.locator(".answer-text").last).to_contain_text("Once, in a house")

    page.get_by_role("button", name="Compare with another version").press("Enter")

    expect(page.locator(".trial")).to_have_count(2)
    expect(page.get_by_label("Version in column 2")).to_have_value("v1")
    expect(page.locator("[aria-busy]")).to_have_count(1)
    page.get_by_role("button", name="Compare with another version").press("Enter")
    expect(page.get_by_label("Version in column 3")).to_be_focused()
    expect(page.locator(".answer-text").last).to_contain_text("Nobody there knew", **SLOW)
    page.get_by_role("button", name="Remove unsaved text").press("Enter")
    expect(page.locator(".trial")).to_have_count(2)
    page.get_by_role("button", name="Remove v1").click()
    expect(page.locator(".trial")).to_have_count(1)
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".answer-end", has_text="Stopped.")).to_be_visible()
    assert visitor.console == []


def test_the_playground_works_without_javascript(visit, slow, api):
    patch_agent(api, slow, model={"provider": "demo", "name": "storyteller", "delay": 0.02})
    page = visit(java_script_enabled=False).goto(f"/agents/{slow}/try")
    page.get_by_label("Message").fill("the sea")
    with page.expect_navigation():
        page.get_by_role("button", name="Run").click()

    refresh = page.get_by_role("link", name="Refresh")
    for _ in range(200):
        if not refresh.count():  # after loading: the link is added last
            break
        with page.expect_navigation():
            refresh.click()

    expect(page.locator(".answer-text").last).to_contain_text(STORY_ENDS)
    page.get_by_role("button", name="Compare with another version").click()
    expect(page.locator(".trial")).to_have_count(2)
    page.get_by_role("link", name="Open the run").click()
    expect(page.get_by_role("heading", level=2).first).to_have_text("Run of Concierge")


def test_a_deleted_run_is_reported(visit, api, slow, ask):
    page = ask(visit(), slow)
    expect(page.locator(".answer-text").last).to_contain_text("I am the demo model")

    assert api.delete(f"/api/stored/agents/{slow}").status_code == 200

    expect(page.locator("[data-trouble]")).to_contain_text("This run no longer exists", **SLOW)
    expect(page.locator("[aria-busy]")).to_have_count(0)


@pytest.mark.parametrize("width", [1440, 390])
def test_nothing_overflows_the_window(visit, agent, ask, width):
    visitor = visit()
    visitor.page.set_viewport_size({"width": width, "height": 844})

    page = ask(visitor, agent, "a" * 200, "live,v1,v2")

    expect(page.locator(".answer-text").filter(has_text="My instructions begin")).to_have_count(3)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_run_page_updates_when_the_run_ends(visit, slow, ask):
    visitor = visit()
    page = ask(visitor, slow)
    expect(page.locator("[aria-busy]")).to_have_count(1)
    page.wait_for_url("**runs=*")
    run_id = page.url.partition("runs=")[2]

    page = visitor.goto(f"/runs/{run_id}")
    expect(page.locator(".page-header")).to_contain_text("Running")
    expect(page.locator(".answer-text").last).to_contain_text("Once, in a house")
    page.get_by_role("button", name="Stop").click()

    expect(page.locator(".page-header")).to_contain_text("Stopped")
    expect(page.get_by_role("heading", name="Timeline")).to_be_visible()
    visitor.goto("/runs?by=me")
    expect(page.locator("tbody tr").first).to_contain_text("Hello")
    expect(page.locator("tbody tr").first).to_contain_text("Stopped")
    assert visitor.console == []
