"""A restart of the server during a streamed answer."""

from playwright.sync_api import expect

from tests.browser.conftest import Visitor, create_agent
from tests.served import Served


def test_the_page_reconnects_and_the_answer_is_completed(browser, own_served: Served, ask):
    with own_served.client(own_served.keys["publisher"]) as api:
        create_agent(api, "slow", model={"provider": "demo", "name": "storyteller", "delay": 0.1})
    context = browser.new_context()
    visitor = Visitor(context, own_served.base_url).sign_in("publisher")
    page = ask(visitor, "slow", "the sea")
    expect(page.locator(".answer-text").last).to_contain_text("I am the demo model")

    own_served.kill()
    expect(page.get_by_text("Reconnecting …")).to_be_visible()
    own_served.start()

    answer = page.locator("[data-parts] .answer-text")
    expect(answer.last).to_contain_text("you bring along.", timeout=60_000)
    expect(answer).to_have_count(1)
    assert answer.inner_text().count("I am the demo model") == 1  # the words from before are not repeated
    page.get_by_role("link", name="Open the run").click()
    expect(page.locator(".page-header")).to_contain_text("Succeeded")
    context.close()
