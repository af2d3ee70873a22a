"""Accessibility of pages and dialogs in both themes at two widths, checked by axe-core."""

import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

from playwright.sync_api import Page, expect

from tests.browser.conftest import Visitor, activate, create_agent, patch_agent
from tests.conftest import DRILL

FIND_VIOLATIONS = """async ([theme, part]) => {
    document.documentElement.dataset.theme = theme;
    // An animation by scrolling has no end.
    const timed = document.getAnimations().filter((each) => each.timeline instanceof DocumentTimeline);
    await Promise.all(timed.map((each) => each.finished.catch(() => 0)));
    const {violations} = await axe.run(part, {resultTypes: ["violations"]});
    return violations.flatMap(({id, nodes}) =>
        nodes.map(({target, failureSummary}) => `${id}: ${target.join(" ")} ${failureSummary}`));
}"""
LOOKS = [(theme, width) for theme in ("light", "dark") for width in (1280, 390)]

READ = [
    "/",
    "/?panel=filters",
    "/go-to",
    "/?q=concierge",
    "/?q=nothing-has-this-word",
    "/new-agent",
    "/exchange",
    "/no-such-page",
]
READ += [
    "/approvals",
    "/approvals?tab=decided",
    "/account/notices",
    "/account/keys",
    "/account/password",
    "/team",
    "/selected-agents",
    "/deleted-agents",
]
OF_AN_AGENT = ["", "/usage", "/versions", "/versions/1", "/versions/2", "/versions/compare?from=1&to=3"]
OF_AN_AGENT += ["/live-history", "/used-by", "/runs"]
OF_AN_AGENT += ["/versions/compare?from=1&to=3&layout=sides", "/delete", "/archive", "/hand-over"]
# Pages with other controls for those who may not publish or not edit. The rest has fewer controls, and no others.
DIFFERENT_FOR_OTHERS = ["", "/versions", "/live-history"]
CONFIRMATIONS = [
    "versions/1/activate",
    "versions/1/restore",
    "versions/1/describe",
    "versions/1/delete",
    "versions/3/delete",
]
CONFIRMATIONS += ["versions/1/duplicate", "versions/save", "versions/discard-draft"]


# Forms that only a shortcut or a script could submit. Lists and read-only pages of Django's admin are such forms.
FIND_FORMS_WITHOUT_BUTTON = """() => [...document.querySelectorAll("form[method=post]:not([hidden])")]
    .filter((form) => !form.matches("#changelist-form, #content-main > form"))
    .filter((form) => ![...form.elements].some((element) => ["submit", "image"].includes(element.type)))
    .filter((form) => !form.querySelector("[type=submit]"))
    .map((form) => `form without a button that submits it: ${form.getAttribute("action")} ${form.id}`)"""


# All closed operations and schemas of the API reference are one template, and so are the links to them. `make drill`
# checks each of them, for which axe needs eight seconds.
KEEP_SOME_OF_REFERENCE = """() => [".api-group > details.api-route:not([open])", ".api-index li"].map((repeated) =>
    [...document.querySelectorAll(repeated)].slice(20).forEach((element) => element.remove()))"""


def find_violations(page: Page, axe: str, part: str = "html") -> list[str]:
    """Return the violations of the page, or of a part of it, in one theme and width, or in a drill in all of them.

    Each look takes a second. Which one it is depends on the title of the page, so all are used and a failure repeats.
    """
    if DRILL:
        return find_violations_in(LOOKS, page, axe, part)
    return find_violations_in([LOOKS[crc32(page.title().encode()) % len(LOOKS)]], page, axe, part)


def find_violations_in(looks: Sequence[tuple[str, int]], page: Page, axe: str, part: str = "html") -> list[str]:
    page.emulate_media(reduced_motion="reduce")  # colours change during animations
    page.wait_for_load_state()
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe)
    faults: list[str] = page.evaluate(FIND_FORMS_WITHOUT_BUTTON)
    size = page.viewport_size or {"width": 1280, "height": 900}
    for theme, width in looks:
        page.set_viewport_size({"width": width, "height": size["height"]})
        faults += [f"{theme} {width} {fault}" for fault in page.evaluate(FIND_VIOLATIONS, [theme, part])]
    page.set_viewport_size(size)
    return faults


def test_violations_are_found(visit: Any, axe: str):
    page = visit().goto("/account/keys")
    page.evaluate("document.querySelector('h1').innerHTML = '<img src=\"data:,\">'")
    page.evaluate("document.querySelector('h2').style.color = '#333333'")
    page.evaluate(
        "document.querySelectorAll('main form [type=submit]').forEach((button) => { button.type = 'button' })"
    )

    violations = " ".join(find_violations_in([("light", 1280), ("dark", 390)], page, axe))

    assert "light 1280 image-alt" in violations
    assert "dark 390 color-contrast" in violations
    assert "form without a button that submits it" in violations


def test_the_head_of_the_boxes_has_words_on_phones(visit: Any, agent: str, api: Any, axe: str):
    create_agent(api, deleted := f"{agent}-deleted")
    api.delete(f"/api/stored/agents/{deleted}")

    page = visit().goto("/deleted-agents")
    expect(page.locator("tbody .select input").first).to_be_attached()

    assert find_violations_in([("light", 390)], page, axe, "thead") == []


def test_pages_break_no_rule(visit: Any, agent: str, api: Any, axe: str):
    patch_agent(api, agent, instructions="Greet guests.\n", tools=["text-search", "gone"], autoPublish=False)
    visitor = visit()
    addresses = [*READ, *(f"/agents/{agent}{path}" for path in OF_AN_AGENT)]

    violations = {address: find_violations(visitor.goto(address), axe) for address in addresses}
    page = visitor.goto("/api/docs#createAgent")  # with one operation open
    if not DRILL:
        page.evaluate(KEEP_SOME_OF_REFERENCE)
    violations["reference"] = find_violations(page, axe)

    assert {address: faults for address, faults in violations.items() if faults} == {}


def test_confirmations_break_no_rule_as_pages_and_dialogs(visit: Any, agent: str, api: Any, axe: str):
    activate(api, agent, 2)
    patch_agent(api, agent, name="Day porter", autoPublish=False)
    visitor = visit()
    paths = [f"/agents/{agent}/{path}" for path in CONFIRMATIONS]

    violations = {f"{address} as a page": find_violations(visitor.goto(address), axe) for address in paths}
    page = visitor.goto(f"/agents/{agent}/versions")
    for address in paths:
        page.evaluate("path => void htmx.ajax('GET', path, {target: '#dialogs', swap: 'innerHTML'})", address)
        expect(page.locator("#dialogs dialog[open]")).to_be_visible()
        violations[address] = find_violations(page, axe, "#dialogs")  # the page behind it was checked above
        page.keyboard.press("Escape")
        expect(page.locator("#dialogs dialog")).to_have_count(0)

    assert {address: faults for address, faults in violations.items() if faults} == {}


def test_results_and_errors_break_no_rule(visit: Any, agent: str, api: Any, served: Any, axe: str):
    visitor = visit()
    page = visitor.goto(f"/agents/{agent}/live-history")
    page.click("#undo")
    expect(page.locator(".toast")).to_contain_text("Rolled back to v2.")
    violations = {"undone": find_violations(page, axe)}
    page.goto(f"{served.base_url}/agents/{agent}/versions")
    activate(api, agent, 3)
    page.click("#activate-1")
    release = page.get_by_role("button", name="Publish v1 (replaces v3)")
    expect(release).to_be_visible()
    activate(api, agent, 2)
    release.click()
    expect(page.locator("dialog[open]")).to_contain_text("Nothing was changed")
    violations["refused"] = find_violations(page, axe)
    page.goto(f"{served.base_url}/agents/{agent}/live-history/999999/undo")
    violations["405"] = find_violations(page, axe)
    violations["403"] = find_violations(visit("editor").goto("/team?owner=elsewhere"), axe)
    code = "from django.template.loader import render_to_string; print(render_to_string('500.html'))"
    broke = served.manage("shell", "--no-imports", "-c", code)
    page.route("**/broke", lambda route: route.fulfill(status=500, content_type="text/html", body=broke))
    page.goto(f"{served.base_url}/broke")
    expect(page.get_by_role("heading")).to_have_text("Server error")
    violations["500"] = find_violations(page, axe)

    assert {name: faults for name, faults in violations.items() if faults} == {}


def test_pages_of_viewers_and_editors_break_no_rule(visit: Any, agent: str, api: Any, axe: str):
    patch_agent(api, agent, tools=["text-search", "gone"], autoPublish=False)
    for who in ("editor", "viewer"):
        visitor = visit(who)
        addresses = [f"/agents/{agent}{path}" for path in DIFFERENT_FOR_OTHERS]
        violations = {address: find_violations(visitor.goto(address), axe) for address in addresses}
        assert {address: faults for address, faults in violations.items() if faults} == {}, who


def test_the_editor_breaks_no_rule_during_use(visit: Any, agent: str, api: Any, axe: str):
    visitor = visit()
    page = visitor.goto(f"/agents/{agent}")
    violations = {}
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    violations["keys"] = find_violations(page, axe)
    page.keyboard.press("Escape")
    expect(page.locator("#keys")).to_be_hidden()
    page.get_by_role("textbox", name="Description").fill("Mine")
    page.get_by_role("button", name="Review changes").click()
    expect(page.locator("dialog[open]")).to_be_visible()
    violations["review"] = find_violations(page, axe)
    page.keyboard.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)
    page.locator("#metadata > summary").click()
    page.get_by_role("button", name="Edit Metadata as JSON").click()
    page.get_by_role("textbox", name="Metadata (JSON)").press("Control+a")
    page.keyboard.type("{nonsense")
    page.get_by_role("button", name="Review changes").click()
    expect(page.locator("#notices")).to_contain_text("Not saved")
    violations["a broken field"] = find_violations(page, axe)
    page.close()
    page = visitor.page = visitor.open()
    visitor.goto(f"/agents/{agent}")
    expect(page.get_by_text("Unsaved changes")).to_be_visible()
    violations["recovery"] = find_violations(page, axe)

    patch_agent(api, agent, description="Theirs")
    page.get_by_role("textbox", name="Name", exact=True).fill("Mine")
    page.keyboard.press("Control+s")
    expect(page.locator("#conflict-sides")).to_contain_text("Theirs")
    violations["conflict"] = find_violations(page, axe)

    assert {name: faults for name, faults in violations.items() if faults} == {}


def test_bulk_actions_and_jobs_break_no_rule(visit: Any, agent: str, axe: str, tmp_path: Path):
    visitor = visit()
    violations = {}
    page = visitor.goto("/?q=porter")
    page.get_by_label("Select all").check()
    violations["ticked"] = find_violations(page, axe)
    page.locator(".topbar-tools summary").click()
    violations["menu"] = find_violations(page, axe)
    page.keyboard.press("Escape")
    page.locator(".bulk-bar").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="Delete ")).to_be_visible()
    violations["delete the ticked"] = find_violations(page, axe)
    page = visitor.goto("/exchange")
    page.get_by_role("button", name="Export").click()
    expect(page.get_by_role("link", name="Download")).to_be_visible()
    violations["exported"] = find_violations(page, axe)

    file = tmp_path / "in.jsonl"
    new = {"name": "X", "instructions": "", "model": {"provider": "demo", "name": "echo"}}
    file.write_text(f"{json.dumps({'id': f'new-{uuid.uuid4().hex[:8]}', 'ownerId': '', 'agent': new})}\nnot JSON\n")
    page = visitor.goto("/exchange")
    page.get_by_label("Agents file").set_input_files(file)
    page.get_by_role("button", name="Check the file").click()
    page.get_by_role("button", name="Import 1 agent").click(timeout=30_000)
    expect(page.get_by_text("Some records were not imported.")).to_be_visible(timeout=30_000)
    violations["imported"] = find_violations(page, axe)

    assert {name: faults for name, faults in violations.items() if faults} == {}


def test_the_sign_in_page_breaks_no_rule(browser: Any, served: Any, axe: str):
    context = browser.new_context()
    visitor = Visitor(context, served.base_url)
    page = visitor.goto("/sign-in")
    violations = find_violations(page, axe)
    page.fill("[name=username]", "nobody")
    page.fill("[name=password]", "wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert").or_(page.locator(".field-error:visible, .banner:visible")).first).to_be_visible()

    assert violations + find_violations(page, axe) == []
    context.close()
