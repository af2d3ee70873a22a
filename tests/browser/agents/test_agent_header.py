"""The header of an agent's pages, and messages, on wide screens and on phones."""

import uuid
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import activate, create_agent, patch_agent

PAGES = ["", "/try", "/versions", "/live-history", "/runs", "/used-by", "/versions/1", "/versions/compare?from=1&to=2"]


@pytest.fixture
def long_named(api: Any) -> str:
    """Return the id of an agent with long names without spaces, in a version and in the agent."""
    agent_id = f"long-{uuid.uuid4().hex[:8]}-{'x' * 80}"
    create_agent(api, agent_id, name="Concierge" * 20)
    patch_agent(api, agent_id, instructions="Be kind. " + "y" * 300, changeMessage="z" * 400)
    versions = api.get(f"/api/stored/agents/{agent_id}/versions").json()["versions"]
    api.patch(f"/api/stored/agents/{agent_id}/versions/{versions[0]['id']}", json={"name": "Named" * 18})
    return agent_id


def test_long_names_do_not_push_phone_pages_sideways(visit: Any, long_named: str):
    visitor = visit()
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    too_wide = {}
    for path in [*PAGES, "/versions/1/activate", "/versions/1/restore", "/delete"]:
        page = visitor.goto(f"/agents/{long_named}{path}")
        if page.evaluate("document.documentElement.scrollWidth") > 390:
            too_wide[path] = page.evaluate("""[...document.querySelectorAll("main *")]
                .filter((element) => element.getBoundingClientRect().right > 391)
                .map((element) => element.outerHTML.slice(0, 90))""")[-3:]

    assert too_wide == {}


def test_long_names_do_not_push_columns_out_of_their_table(visit: Any, long_named: str, api: Any):
    api.post(f"/api/agents/{long_named}/generate", json={"messages": "Hello"}).raise_for_status()
    dataset = api.post("/api/datasets", json={"name": "Questions" * 20}).json()["id"]
    for path in ("/runs", "/datasets"):
        table = visit().goto(path).locator("main table")
        expect(table.get_by_text("now", exact=False).last).to_be_in_viewport()
        assert table.evaluate("(table) => table.clientWidth <= table.parentElement.clientWidth"), path
    api.post(f"/api/datasets/{dataset}/items", json={"input": "Hello"}).raise_for_status()
    scorer = {"name": "Kindness" * 20, "type": "check", "presetConfig": {"check": "includes", "value": "kind"}}
    api.post("/api/stored/scorers", json={**scorer, "publish": True}).raise_for_status()
    for path in ("", "/delete", "/experiments/start"):
        page = visit().goto(f"/datasets/{dataset}{path}")
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, path


@pytest.mark.parametrize("path", ["/try", "/quality"])
def test_the_tab_before_the_current_one_is_in_sight_on_phones(visit: Any, agent: str, path: str):
    visitor = visit()
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    tabs = visitor.goto(f"/agents/{agent}{path}").get_by_role("navigation", name="Agent").get_by_role("link")
    current = next(number for number, tab in enumerate(tabs.all()) if tab.get_attribute("aria-current"))

    box = tabs.nth(current - 1).bounding_box()

    assert box["x"] + box["width"] > 30


def test_a_tab_that_has_the_focus_is_in_sight_on_phones(visit: Any, agent: str):
    visitor = visit()
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    page = visitor.goto(f"/agents/{agent}")
    tabs = page.get_by_role("navigation", name="Agent")
    tabs.get_by_role("link", name="Runs").focus()

    page.keyboard.press("Tab")

    quality = tabs.get_by_role("link", name="Quality")
    expect(quality).to_be_focused()
    page.wait_for_function("document.activeElement.getBoundingClientRect().right <= innerWidth")


@pytest.mark.parametrize("width", [390, 1440])
def test_the_header_stays_visible_on_every_page(visit: Any, agent: str, width: int):
    visitor = visit()
    visitor.page.set_viewport_size({"width": width, "height": 600})
    for path in PAGES:
        page = visitor.goto(f"/agents/{agent}{path}")
        page.evaluate("document.body.style.minHeight = '3000px'; scrollTo(0, 1000)")
        page.wait_for_function("scrollY > 900")
        heading = page.get_by_role("heading", level=1)
        expect(heading).to_have_text("Night porter")
        assert 0 <= heading.bounding_box()["y"] < 60, path
        tabs = page.get_by_role("navigation", name="Agent")
        expect(tabs.get_by_role("link")).to_have_text(
            ["Edit", "Playground", "History", "Live history", "Runs", "Quality", "Used by"]
        )
        current = tabs.locator("[aria-current]").bounding_box()
        assert current["x"] >= 0, path
        assert current["x"] + current["width"] <= width, path
        assert tabs.bounding_box()["y"] < 110, path


def test_actions_stand_at_the_bottom_of_phones_and_messages_above_them(visit: Any, agent: str, api: Any):
    visitor = visit()
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    page = visitor.goto(f"/agents/{agent}/versions")

    bar = page.locator("#agent-actions").bounding_box()
    assert (round(bar["x"]), round(bar["width"]), round(bar["y"] + bar["height"])) == (0, 390, 844)
    page.click("#activate-1")
    page.get_by_role("button", name="Publish v1 (replaces v3)").click()
    toast = page.locator(".toast", has_text="v1 is live.")
    expect(toast).to_be_visible()
    box = toast.bounding_box()
    assert box["y"] + box["height"] <= bar["y"]
    expect(page.locator("#agent-title .chip-live")).to_have_text("Live v1")


@pytest.mark.parametrize("path", ["", "/versions/2"])
def test_the_menu_of_the_bar_opens_inside_of_a_phone(visit: Any, agent: str, path: str):
    visitor = visit()
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    page = visitor.goto(f"/agents/{agent}{path}")

    page.locator("#agent-actions .menu > summary").click()

    for link in page.locator("#agent-actions .menu-body").locator("a, button").all():
        expect(link).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("width", [390, 1440])
def test_a_section_of_the_editor_without_content_is_one_line(visit: Any, agent: str, width: int):
    visitor = visit()
    visitor.page.set_viewport_size({"width": width, "height": 844})
    page = visitor.goto(f"/agents/{agent}")

    sections = page.locator("#agent-form details.field-section")
    heights = {section.get_attribute("id"): section.bounding_box()["height"] for section in sections.all()}
    closed = {name: height for name, height in heights.items() if name != "tools"}
    assert len(closed) >= 10
    assert {name: height for name, height in closed.items() if height > 60} == {}
    assert sum(closed.values()) < 844  # all of them in one window
    assert page.get_by_role("button", name="Review changes").bounding_box()["y"] < 844


def test_there_is_one_message_of_each_kind_at_the_bottom_right(visit: Any, agent: str, api: Any):
    visitor = visit()
    visitor.page.set_viewport_size({"width": 1440, "height": 900})
    page = visitor.goto(f"/agents/{agent}/versions")
    page.evaluate("""for (const number of [1, 2, 3]) agentcms.showToast({message: `Message ${number}`});
        for (const number of [1, 2]) agentcms.showToast({message: `Error ${number}`, kind: "fault"});""")

    expect(page.locator(".toast p")).to_have_text(["Message 3", "Error 2"])
    for box in (toast.bounding_box() for toast in page.locator(".toast").all()):
        assert box["x"] > 900
        assert box["x"] + box["width"] <= 1440
    activate(api, agent, 1)
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    last = page.locator(".pagination").bounding_box()
    assert last["y"] + last["height"] < page.locator(".toast").first.bounding_box()["y"]
