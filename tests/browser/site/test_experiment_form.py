"""The form of an experiment says what it may cost, and follows the choices."""

from playwright.sync_api import expect

from tests.browser.conftest import create_agent
from tests.browser.site.test_accessibility_of_data import post


def test_the_estimate_follows_the_form(visit, api, agent):
    absent = f"{agent}-absent"
    create_agent(api, absent, name="Absent", model={"provider": "anthropic", "name": "claude"})
    body = {"name": f"Questions {agent}", "targetType": "agent", "targetIds": [absent]}
    dataset = post(api, "/datasets", body)["id"]
    post(api, f"/datasets/{dataset}/items", {"input": "When do you open?"})
    page = visit().goto(f"/datasets/{dataset}/experiments/start")
    expect(page.locator("#estimate")).to_contain_text("Absent cannot answer: Anthropic has no API key.")

    page.select_option("[name=target]", f"agent:{agent}")
    expect(page.locator("#estimate")).to_contain_text("1 run.")
    page.fill("[name=repeats]", "3")
    page.locator("[name=seed]").focus()
    expect(page.locator("#estimate")).to_contain_text("3 runs.")
    page.fill("[name=version]", "99")
    page.locator("[name=seed]").focus()
    expect(page.locator("#estimate")).to_contain_text("was not found at version '99'.")
