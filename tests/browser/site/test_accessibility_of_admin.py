"""Accessibility of the admin in both themes, checked by axe-core."""

import uuid
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.conftest import Visitor, create_agent, patch_agent
from tests.browser.site.test_accessibility import find_violations
from tests.conftest import DRILL

LISTS = ["agents_app/agent", "versions_app/agentversion", "versions_app/activation", "versions_app/retentionrule"]
LISTS += ["jobs_app/job", "access_app/membership", "access_app/apikey", "auth/user"]
LISTS += ["runs_app/modelprovider", "runs_app/agentrun", "runs_app/pendingcall", "versions_app/deletedagent"]
LISTS += ["memory_app/vector", "memory_app/observation", "memory_app/resource", "memory_app/thread"]
LISTS += ["tools_app/mcpserver", "tools_app/acpagent", "tools_app/acppermission", "tools_app/acpworkspace"]
LISTS += ["runs_app/backgroundtask", "runs_app/tracerule", "knowledge_app/knowledgebase"]
LISTS += ["evals_app/dataset", "evals_app/experiment"]
ADDED = ["agents_app/agent", "versions_app/retentionrule", "access_app/membership", "access_app/apikey", "auth/user"]
ADDED += ["runs_app/modelprovider", "tools_app/mcpserver", "tools_app/acpagent"]
OF_AN_AGENT = ["change", "duplicate", "delete"]
# The headings of tables with a word on two lines.
BROKEN_HEADINGS = """() => [...document.querySelectorAll("thead th, th[scope=row]")].filter(heading => {
  const word = document.createRange()
  const text = heading.firstChild
  if (!text?.data) return false
  return [...text.data.matchAll(/\\S+/g)].some(match => {
    word.setStart(text, match.index)
    word.setEnd(text, match.index + match[0].length)
    return word.getClientRects().length > 1
  })
}).map(heading => heading.textContent)"""
# The contrast of the edge of an input with the page.
EDGE_CONTRAST = """input => {
  const light = text => {
    const parts = text.match(/[0-9.]+/g).slice(0, 3).map(part => part / 255)
    const [red, green, blue] = parts.map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
  }
  const both = [getComputedStyle(input).borderTopColor, getComputedStyle(document.documentElement).backgroundColor]
  const [lower, higher] = both.map(light).sort((one, other) => one - other)
  return (higher + 0.05) / (lower + 0.05)
}"""
# All lists are one template, and so are all forms. `make drill` checks each of them.
STEP = 1 if DRILL else 3


def find_violations_and_overflow(page: Page, axe: str) -> list[str]:
    """Return the violations of the page, and one more if it scrolls sideways on a phone."""
    violations = find_violations(page, axe)
    page.set_viewport_size({"width": 390, "height": 844})
    width = page.evaluate("document.documentElement.scrollWidth")
    page.set_viewport_size({"width": 1280, "height": 900})
    return violations + ([f"390 px: the page is {width} px wide"] if width > 390 else [])


def row(visitor: Visitor, model: str) -> Any:
    """Open the first object of a list and return its page."""
    page = visitor.goto(f"/admin/{model}/")
    page.locator("#result_list tbody th a").first.click()
    page.wait_for_url("**/change/")
    return page


def test_lists_and_empty_forms_break_no_rule(visit: Any, agent: str, axe: str):
    visitor = visit("root")
    addresses = ["/admin/", "/admin/password_change/", *(f"/admin/{model}/" for model in LISTS[::STEP])]
    addresses += [f"/admin/{model}/add/" for model in ADDED[::STEP]]

    violations = {address: find_violations_and_overflow(visitor.goto(address), axe) for address in addresses}

    assert {address: faults for address, faults in violations.items() if faults} == {}


def test_objects_and_confirmations_break_no_rule(visit: Any, agent: str, api: Any, axe: str):
    patch_agent(api, agent, name="Day porter", instructions="Greet.\n" * 30, autoPublish=False)
    visitor = visit("root")
    rows = ["versions_app/agentversion", "versions_app/activation", "access_app/membership", "auth/user"]

    violations = {model: find_violations_and_overflow(row(visitor, model), axe) for model in rows}
    violations |= {
        page_name: find_violations_and_overflow(visitor.goto(f"/admin/agents_app/agent/{agent}/{page_name}/"), axe)
        for page_name in OF_AN_AGENT
    }
    confirmations = {
        "Publish the selected version …": ("versions_app/agentversion", "Changes to the live version"),
        "Pin the selected versions …": ("versions_app/agentversion", "Pinned versions are never pruned."),
        "Publish drafts of selected agents …": ("agents_app/agent", "No version is created."),
        "Archive selected agents …": ("agents_app/agent", "Archived agents are left out"),
        "Delete selected agents …": ("agents_app/agent", "Objects"),
    }
    for action, (model, text) in confirmations.items():
        page = visitor.goto(f"/admin/{model}/?q={agent}")
        page.locator("#result_list .action-select").first.check()
        page.get_by_label("Action:").select_option(label=action)
        page.get_by_role("button", name="Go", exact=True).click()
        expect(page.get_by_text(text)).to_be_visible()
        violations[action] = find_violations_and_overflow(page, axe)

    assert {name: faults for name, faults in violations.items() if faults} == {}


def test_the_trash_and_the_questions_about_keys_break_no_rule(visit: Any, api: Any, axe: str):
    agent_id = f"trash-{uuid.uuid4().hex[:8]}"
    create_agent(api, agent_id, name="Left behind")
    api.delete(f"/api/stored/agents/{agent_id}").raise_for_status()
    visitor = visit("root")
    page = visitor.goto(f"/admin/versions_app/deletedagent/?q={agent_id}")
    actions = {
        name: page.get_by_role("link", name=name).get_attribute("href") for name in ("Restore", "Delete for good")
    }

    violations = {"the entry": find_violations_and_overflow(row(visitor, "versions_app/deletedagent"), axe)}
    for name, address in actions.items():
        page = visitor.goto(address)
        expect(page.get_by_role("button", name=name)).to_be_visible()
        violations[name] = find_violations_and_overflow(page, axe)
    page = visitor.goto("/admin/access_app/apikey/")
    # The keys of others may be revoked already.
    page.locator("#result_list tr", has_text="root").locator(".action-select").first.check()
    page.get_by_label("Action:").select_option(label="Revoke selected keys …")
    page.get_by_role("button", name="Go", exact=True).click()
    expect(page.get_by_text("get a 401 immediately")).to_be_visible()
    violations["revoke"] = find_violations_and_overflow(page, axe)

    assert {name: faults for name, faults in violations.items() if faults} == {}


def test_the_versions_of_an_mcp_server_are_readable_on_a_phone(visit: Any, served: Any):
    key = f"shop-{uuid.uuid4().hex[:8]}"
    server = {"type": "http", "url": "https://mcp.example.org/mcp"}
    with served.client(served.keys["root"]) as root:
        root.post("/api/stored/mcp-clients", json={"id": key, "name": "Shop", "servers": {key: server}})
        changed = root.patch(f"/api/stored/mcp-clients/{key}", json={"name": "Shop of lamps"})
        assert changed.status_code == 200
        visitor = visit("root")
        page = visitor.goto(f"/admin/tools_app/mcpserver/?q={key}")
        page.set_viewport_size({"width": 390, "height": 844})
        page.locator("#result_list tbody th a").first.click()
        expect(page.get_by_role("button", name="Restore version 1")).to_be_visible()

        assert page.evaluate(BROKEN_HEADINGS) == []
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        root.delete(f"/api/stored/mcp-clients/{key}")


def test_lists_are_not_cut_off(visit: Any, agent: str, api: Any):
    change = {"description": "Keeps shop.", "changeMessage": "Add " + "shipping_price_" * 4}
    assert api.patch(f"/api/stored/agents/{agent}", json=change).status_code == 200
    visitor = visit("root")
    visitor.page.set_viewport_size({"width": 1440, "height": 900})
    visitor.goto("/admin/jobs_app/job/").get_by_role("button", name="Verify histories").click()

    for model in ("jobs_app/job", "access_app/apikey", "versions_app/agentversion"):
        results = visitor.goto(f"/admin/{model}/").locator("#changelist .results")
        assert results.evaluate("results => results.scrollWidth - results.clientWidth") <= 0, model


def test_a_list_fades_where_columns_are_hidden_on_phones(visit: Any, agent: str):
    visitor = visit("root")
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    results = visitor.goto("/admin/agents_app/agent/").locator("#changelist .results")
    hidden_edge = "element => getComputedStyle(element).getPropertyValue('--hidden-edge')"

    at_start = results.evaluate(hidden_edge)
    results.evaluate("element => element.scrollTo(element.scrollWidth, 0)")
    expect(results).to_have_css("--hidden-edge", "0px")
    visitor.page.set_viewport_size({"width": 2000, "height": 844})

    assert at_start == "40px"
    expect(results).to_have_css("--hidden-edge", "0px")


def test_a_no_is_not_shown_as_a_problem(visit: Any, agent: str):
    page = visit("root").goto("/admin/auth/user/")
    mark = page.locator("#result_list img[alt=False]").first

    expect(mark).to_have_css("filter", "grayscale(1)")
    expect(page.locator("#result_list img[alt=True]").first).to_have_css("filter", "none")


def test_the_edges_of_inputs_are_visible_in_both_themes(visit: Any, agent: str):
    page = visit("root").goto(f"/admin/agents_app/agent/{agent}/change/")

    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for name in ("name", "description", "owner_id"):
            assert page.locator(f"[name={name}]").evaluate(EDGE_CONTRAST) >= 3, (scheme, name)


def test_the_steps_of_a_run_are_readable_on_a_phone(visit: Any, agent: str, api: Any):
    run = api.post(f"/api/agents/{agent}/generate", json={"messages": "Hello"}).raise_for_status().json()["runId"]
    visitor = visit("root")
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    page = visitor.goto(f"/admin/runs_app/agentrun/{run}/change/")
    expect(page.locator(".tabular tbody tr").first).to_be_visible()

    assert page.evaluate(BROKEN_HEADINGS) == []
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_job_progress_updates_without_a_reload(visit: Any, axe: str):
    visitor = visit("root")
    page = visitor.goto("/admin/jobs_app/job/")
    title, buttons = page.locator("#content > h1").bounding_box(), page.locator(".object-tools").bounding_box()
    assert buttons["y"] >= title["y"] + title["height"]  # many buttons do not cover the title
    page.get_by_role("button", name="Verify histories").click()

    expect(page.locator(".field-state .readonly")).to_have_text("Done", timeout=30_000)
    expect(page.locator("#content h2")).to_have_text("Verification of histories (done)")
    expect(page.locator("[hx-trigger]")).to_have_count(0)
    assert visitor.console == []
    assert find_violations(page, axe) == []
