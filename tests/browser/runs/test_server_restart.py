"""A restart of the server during a streamed answer."""

from playwright.sync_api import expect

from tests.browser.conftest import Visitor, create_agent
from tests.served import Served


def test_the_page_reconnects_and_reports_the_failed_run(browser, own_served: Served, ask):
    with own_served.client(own_served.keys["publisher"]) as api:
        create_agent(api, "slow", model={"provider": "demo", "name": "storyteller", "delay": 0.3})
    context = browser.new_context()
    visitor = Visitor(context, own_served.base_url).sign_in("publisher")
    page = ask(visitor, "slow", "the sea")
    expect(page.locator(".answer-text").last).to_contain_text("I am the demo model")

    own_served.kill()
    expect(page.get_by_text("Reconnecting …")).to_be_visible()
    own_served.start()

    expect(page.get_by_text("No answer.")).to_be_visible(timeout=60_000)
    expect(page.locator(".answer")).to_contain_text("The server process of this run stopped. Run it again.")
    expect(page.locator(".answer-text").last).to_contain_text("I am the demo model")
    page.get_by_role("link", name="Open the run").click()
    expect(page.locator(".page-header")).to_contain_text("Failed")
    expect(page.locator(".answer-text").last).to_contain_text("I am the demo model")
    context.close()
