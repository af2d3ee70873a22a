"""Pages that go on by themselves while their user is signed out in another tab, and signs in again there."""

import uuid
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.conftest import create_agent, patch_agent

SIGNED_OUT = "You have been signed out. What you typed stays on this page."
RETURN = "document.dispatchEvent(new Event('visibilitychange'))"  # as by going back to the tab


def sign_out(visitor: Any) -> list[Any]:
    """End the session. Return the cookies that continue it."""
    cookies: list[Any] = visitor.context.cookies()
    visitor.context.clear_cookies(name="sessionid")
    return cookies


def come_back(visitor: Any, page: Page, cookies: list[Any]) -> None:
    visitor.context.add_cookies(cookies)
    page.evaluate(RETURN)


def test_an_answer_that_ends_meanwhile_is_shown_after_signing_in(visit: Any, api: Any, slow: str, ask: Any):
    patch_agent(api, slow, model={"provider": "demo", "name": "storyteller", "delay": 0.02})
    visitor = visit()
    page = ask(visitor, slow, "the sea")
    expect(page.locator(".answer-text").last).to_contain_text("Nobody there knew")

    cookies = sign_out(visitor)
    page.get_by_label("Message").fill("Next question")

    expect(page.locator(".toast-fault")).to_contain_text(SIGNED_OUT)
    expect(page.locator("[data-trouble]")).to_contain_text("signed out")
    come_back(visitor, page, cookies)
    expect(page.get_by_role("link", name="Open the run")).to_be_visible()
    expect(page.locator(".toast-fault")).to_have_count(0)
    expect(page.get_by_label("Message")).to_have_value("Next question")


def test_an_answer_that_still_streams_continues_after_signing_in(visit: Any, slow: str, ask: Any):
    visitor = visit()
    page = ask(visitor, slow, "the sea")
    expect(page.locator(".answer-text").last).to_contain_text("Once, in a house")
    cookies = sign_out(visitor)

    page.evaluate(RETURN)  # connects again

    expect(page.locator("[data-trouble]")).to_contain_text("signed out")
    expect(page.locator(".toast-fault")).to_contain_text(SIGNED_OUT)
    come_back(visitor, page, cookies)
    expect(page.locator("[data-trouble]")).to_have_text("")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".answer-end", has_text="Stopped.")).to_be_visible()


def test_a_conversation_goes_on_after_signing_in(visit: Any, api: Any):
    key = f"trip-{uuid.uuid4().hex[:8]}"
    create_agent(api, key, memory="last-messages")
    body = {"messages": "Hello", "memory": {"thread": key, "resource": key}}
    assert api.post(f"/api/agents/{key}/generate", json=body).status_code == 200
    visitor = visit()
    page = visitor.goto(f"/threads/{key}")
    page.get_by_label("Text").fill("Not sent yet")

    cookies = sign_out(visitor)

    expect(page.locator(".toast-fault")).to_contain_text(SIGNED_OUT)
    expect(page.get_by_role("link", name="Sign in in a new tab")).to_be_visible()
    assert api.post(f"/api/agents/{key}/generate", json={**body, "messages": "Are you there?"}).status_code == 200
    come_back(visitor, page, cookies)
    expect(page.get_by_text("You said: Are you there?")).to_be_visible()
    expect(page.get_by_label("Text")).to_have_value("Not sent yet")
