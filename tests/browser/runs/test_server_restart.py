"""A restart of the server: during a streamed answer, and between two conversations with an agent that remembers."""

from playwright.sync_api import expect

from tests.browser.conftest import Visitor, create_agent
from tests.served import Served, wait_until

RECALL = {"options": {"lastMessages": 10, "semanticRecall": True}}


def tell_the_colour(api, visitor, ask):
    """Tell an agent a favourite colour in the playground, and wait until a worker has indexed it."""
    page = ask(visitor, "butler", "My favourite colour is turquoise.")
    expect(page.get_by_role("button", name="New conversation")).to_be_visible()
    query = {"agentId": "butler", "searchQuery": "favourite colour"}
    wait_until(lambda: api.get("/api/memory/search", params=query).json().get("searchType") == "semantic", 60)
    wait_until(lambda: api.get("/api/memory/search", params=query).json()["count"], 60)


def ask_the_colour(visitor, ask):
    """Ask for the colour in a new conversation, then return to the first one."""
    page = ask(visitor, "butler", "Which colour do I like best?")
    expect(page.locator(".answer-text").last).to_contain_text("I remember:")
    expect(page.locator(".answer-text").last).to_contain_text("My favourite colour is turquoise.")
    conversation = page.get_by_label("Conversation in column 1")
    expect(conversation.locator("option:checked")).to_contain_text("Which colour do I like best?")
    page.get_by_role("button", name="New conversation").click()
    expect(conversation.locator("option:checked")).to_have_text("New conversation")
    first = conversation.locator("option", has_text="My favourite colour").get_attribute("value")
    conversation.select_option(first)
    expect(page.locator(".sent-message")).to_have_text("My favourite colour is turquoise.")


def test_answers_are_completed_and_agents_remember_after_a_restart(browser, own_served: Served, ask):
    context = browser.new_context()
    visitor = Visitor(context, own_served.base_url).sign_in("publisher")
    with own_served.client(own_served.keys["publisher"]) as api:
        create_agent(api, "slow", model={"provider": "demo", "name": "storyteller", "delay": 0.1})
        create_agent(api, "butler", model={"provider": "demo", "name": "echo", "delay": 0}, memory=RECALL)
        tell_the_colour(api, visitor, ask)
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
    ask_the_colour(visitor, ask)
    context.close()
