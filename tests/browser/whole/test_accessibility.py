"""No page and no dialog breaks a rule of axe-core, in either theme."""

import json
import uuid
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.versions.conftest import Visitor, activate, patch

# Themes differ in colours alone, so one of them is enough for the other rules.
BROKEN = """async (theme) => {
    document.documentElement.dataset.theme = theme;
    await Promise.all(document.getAnimations().map((each) => each.finished.catch(() => 0)));
    const rules = theme === "light" ? {} : {runOnly: ["color-contrast", "link-in-text-block"]};
    const {violations} = await axe.run(document, {resultTypes: ["violations"], ...rules});
    return violations.flatMap(({id, nodes}) =>
        nodes.map(({target, failureSummary}) => `${theme} ${id}: ${target.join(" ")} ${failureSummary}`));
}"""

READ = ["/", "/?q=concierge", "/?q=nothing-has-this-word", "/new-agent", "/exchange", "/no-such-page", "/api/docs"]
READ += ["/account/keys", "/account/password", "/account/team"]
OF_AN_AGENT = ["", "/versions", "/versions/1", "/versions/2", "/versions/compare?from=1&to=3", "/activations"]
OF_AN_AGENT += ["/versions/compare?from=1&to=3&layout=sides", "/delete", "/hand-over"]
ASKED = ["versions/1/activate", "versions/1/restore", "versions/1/describe", "versions/1/delete", "versions/3/delete"]
ASKED += ["versions/1/duplicate", "versions/save", "versions/discard-draft"]


def broken(page: Page, axe: str) -> list[str]:
    """The rules that what is shown breaks, in both themes."""
    page.emulate_media(reduced_motion="reduce")  # what fades in has other colours on its way
    page.evaluate(axe)
    return [fault for theme in ("light", "dark") for fault in page.evaluate(BROKEN, theme)]


def test_the_rules_are_at_work(visit: Any, axe: str):
    page = visit().goto("/account/keys")
    page.evaluate("document.querySelector('h1').innerHTML = '<img src=\"data:,\">'")
    page.evaluate("document.querySelector('h2').style.color = '#333333'")

    found = " ".join(broken(page, axe))

    assert "light image-alt" in found
    assert "dark color-contrast" in found


def test_pages(visit: Any, agent: str, api: Any, axe: str):
    patch(api, agent, instructions="Greet guests.\n", tools=["text-search", "gone"], autoPublish=False)
    visitor = visit()
    addresses = [*READ, *(f"/agents/{agent}{path}" for path in OF_AN_AGENT)]

    found = {address: broken(visitor.goto(address), axe) for address in addresses}

    assert {address: faults for address, faults in found.items() if faults} == {}


def test_questions_as_pages_and_as_dialogs(visit: Any, agent: str, api: Any, axe: str):
    activate(api, agent, 2)
    patch(api, agent, name="Day porter", autoPublish=False)
    visitor = visit()
    found = {}

    for path in ASKED:
        address = f"/agents/{agent}/{path}"
        found[f"{address} as a page"] = broken(visitor.goto(address), axe)
        page = visitor.goto(f"/agents/{agent}/versions")
        page.evaluate("path => void htmx.ajax('GET', path, {target: '#dialogs', swap: 'innerHTML'})", address)
        expect(page.locator("#dialogs dialog[open]")).to_be_visible()
        found[address] = broken(page, axe)

    assert {address: faults for address, faults in found.items() if faults} == {}


def test_the_editor_at_work(visit: Any, agent: str, api: Any, axe: str):
    visitor = visit()
    page = visitor.goto(f"/agents/{agent}")
    found = {}
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    found["keys"] = broken(page, axe)
    page.keyboard.press("Escape")
    page.get_by_role("textbox", name="Description").fill("Mine")
    page.get_by_label("Metadata").last.click()
    page.keyboard.type("{nonsense")
    page.locator("button", has_text="Review").first.click()
    expect(page.locator("dialog[open]")).to_be_visible()
    found["review"] = broken(page, axe)
    page.keyboard.press("Escape")
    found["a broken field"] = broken(page, axe)
    page.close()
    page = visitor.page = visitor.open()
    visitor.goto(f"/agents/{agent}")
    expect(page.get_by_text("Unsaved text was kept")).to_be_visible()
    found["recovery"] = broken(page, axe)

    patch(api, agent, description="Theirs")
    page.get_by_role("textbox", name="Name", exact=True).fill("Mine")
    page.keyboard.press("Control+s")
    expect(page.locator("#clash")).to_contain_text("Theirs")
    found["conflict"] = broken(page, axe)

    assert {name: faults for name, faults in found.items() if faults} == {}


def test_acts_on_the_ticked_and_the_jobs(visit: Any, agent: str, axe: str, tmp_path: Path):
    visitor = visit()
    found = {}
    page = visitor.goto("/?q=porter")
    page.get_by_label("Select all").check()
    found["ticked"] = broken(page, axe)
    page.locator(".topbar details summary").click()
    found["menu"] = broken(page, axe)
    page.keyboard.press("Escape")
    page.locator(".bulk-bar").get_by_role("button", name="Delete").click()
    found["delete the ticked"] = broken(page, axe)
    page = visitor.goto("/exchange")
    page.get_by_role("button", name="Export").click()
    expect(page.get_by_role("link", name="Download")).to_be_visible()
    found["exported"] = broken(page, axe)

    file = tmp_path / "in.jsonl"
    new = {"name": "X", "instructions": "", "model": {"provider": "demo", "name": "echo"}}
    file.write_text(f"{json.dumps({'id': f'new-{uuid.uuid4().hex[:8]}', 'ownerId': '', 'agent': new})}\nnot JSON\n")
    page = visitor.goto("/exchange")
    page.get_by_label("File of agents").set_input_files(file)
    page.get_by_role("button", name="Check the file").click()
    page.get_by_role("button", name="Import 1 agent").click(timeout=30_000)
    expect(page.get_by_text("Not all could be taken in.")).to_be_visible(timeout=30_000)
    found["imported"] = broken(page, axe)

    assert {name: faults for name, faults in found.items() if faults} == {}


def test_signing_in(browser: Any, served: Any, axe: str):
    context = browser.new_context()
    visitor = Visitor(context, served.base_url)
    page = visitor.goto("/sign-in")
    found = broken(page, axe)
    page.fill("[name=username]", "nobody")
    page.fill("[name=password]", "wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert").or_(page.locator(".field-error:visible, .banner:visible")).first).to_be_visible()

    assert found + broken(page, axe) == []
    context.close()
