"""Accessibility of the dialogs and forms of evaluations, checked by axe-core in both themes at two widths.

Each is checked in one look, and in a drill in all of them.
"""

import uuid
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import patch_agent
from tests.browser.site.test_accessibility import find_violations_in
from tests.browser.site.test_accessibility_of_data import add_scorer, post, start_experiment
from tests.conftest import DRILL
from tests.served import Served

LOOKS = [(theme, width) for theme in ("light", "dark") for width in (1440, 390)]
# The part of the page requests itself again, as it does while an experiment runs.
POLL_ONCE = """selector => {
    const part = document.querySelector(selector);
    part.dataset.old = "";
    part.setAttribute("hx-get", location.pathname);
    part.setAttribute("hx-select", selector);
    part.setAttribute("hx-trigger", "every 100ms");
    htmx.process(part, true);
}"""
ROWS = 'input,groundTruth\n"When do you open?",At nine.\n,Nothing\n'


@dataclass
class Evaluations:
    """An agent whose draft a gate refuses, with a dataset, an experiment, a scorer and a run."""

    agent: str
    dataset: str
    item: str
    experiment: str
    scorer: str
    run: str
    gate: str


@pytest.fixture
def api(served: Served) -> Any:
    """Return an API client of a manager."""
    with served.client(served.keys["root"]) as client:
        yield client


@pytest.fixture
def rows(api: httpx.Client, agent: str) -> Evaluations:
    dataset = post(api, "/datasets", {"name": f"Exam {uuid.uuid4().hex[:8]}", "scorerIds": ["answer-length"]})["id"]
    item = post(api, f"/datasets/{dataset}/items", {"input": "When do you open?", "groundTruth": "At nine."})["id"]
    experiment = start_experiment(api, dataset, agent, 3)
    run = post(api, f"/agents/{agent}/generate", {"messages": 'text-search {"pattern": "a", "text": "a"}'})["runId"]
    gate = {"datasetId": dataset, "scorer": "answer-length", "min": 0.8}
    gate_id = post(api, f"/stored/agents/{agent}/gates", gate)["id"]
    for name in ("Day porter", "Porter"):  # version 4, and the draft
        patch_agent(api, agent, name=name, autoPublish=False)
    return Evaluations(agent, dataset, item, experiment, add_scorer(api), run, gate_id)


def violations_of(page: Page, axe: str, name: str, part: str = "html") -> list[str]:
    """Return the violations of a page or a part of it, in the look of its name or in a drill in all."""
    return find_violations_in(LOOKS if DRILL else [LOOKS[crc32(name.encode()) % len(LOOKS)]], page, axe, part)


def dialogs_of(rows: Evaluations) -> dict[str, str]:
    """Return the paths of all dialogs by name."""
    return {
        "add a run to a dataset": f"/runs/{rows.run}/add-to-dataset",
        "delete a dataset": f"/datasets/{rows.dataset}/delete",
        "purge an item": f"/datasets/{rows.dataset}/items/{rows.item}/purge",
        "delete a gate": f"/agents/{rows.agent}/gates/{rows.gate}/delete",
        "publish despite a gate": f"/agents/{rows.agent}/versions/4/activate",
        "restore despite a gate": f"/agents/{rows.agent}/versions/4/restore",
    }


def test_dialogs_break_no_rule(visit: Any, rows: Evaluations, axe: str):
    visitor = visit("root")
    page = visitor.goto(f"/agents/{rows.agent}/quality")
    violations = {}

    for name, path in dialogs_of(rows).items():
        page.evaluate("path => void htmx.ajax('GET', path, {target: '#dialogs', swap: 'innerHTML'})", path)
        dialog = page.locator("#dialogs dialog[open]")
        expect(dialog).to_be_visible()
        violations[name] = violations_of(page, axe, name, "#dialogs")
        if name == "publish despite a gate":
            expect(dialog.get_by_label("Reason to publish without")).to_be_visible()
            # The response replaces the dialog, which shows the reason from the start.
            dialog.evaluate("element => element.classList.add('before')")
            dialog.get_by_role("button", name="Publish").click()
            expect(page.locator("#dialogs dialog.before")).to_have_count(0)
            expect(dialog.get_by_text("no experiment has tested it.").first).to_be_visible()
            violations["a refusal"] = violations_of(page, axe, "a refusal", "#dialogs")
        if name == "add a run to a dataset":
            dialog.get_by_label("Or a new dataset").fill("Sœur")
            page.set_viewport_size({"width": 390, "height": 844})
            assert page.evaluate("document.documentElement.scrollWidth") == 390
            page.set_viewport_size({"width": 1440, "height": 900})
        page.keyboard.press("Escape")
        expect(page.locator("#dialogs dialog")).to_have_count(0)

    assert {name: faults for name, faults in violations.items() if faults} == {}


def test_forms_break_no_rule(visit: Any, rows: Evaluations, axe: str):
    visitor = visit("root")
    paths = [
        "/experiments",
        *(f"/datasets/{rows.dataset}/{name}" for name in ("import", "settings", "versions", "versions/1")),
    ]
    paths += [f"/agents/{rows.agent}/gates/{name}" for name in ("add", rows.gate)]
    paths += [f"{rows.scorer}/edit", f"/runs/add-to-dataset?run={rows.run}", *dialogs_of(rows).values()]

    violations = {}
    for number, path in enumerate(paths):
        page = visitor.goto(path)
        violations[path] = violations_of(page, axe, f"form {number}")

    assert {path: faults for path, faults in violations.items() if faults} == {}
    assert visitor.console == []


def test_forms_that_open_or_answer_in_place_break_no_rule(visit: Any, rows: Evaluations, axe: str):
    visitor = visit("root")
    violations = {}

    page = visitor.goto(f"/datasets/{rows.dataset}")
    page.get_by_role("link", name="Edit", exact=False).first.click()
    expect(page.locator("tr textarea").first).to_be_visible()
    violations["an item in place"] = violations_of(page, axe, "an item in place")

    page = visitor.goto(f"/experiments/{rows.experiment}")
    page.locator("summary", has_text="Review").click()
    violations["a review"] = violations_of(page, axe, "a review")
    page.evaluate(POLL_ONCE, "#experiment")
    expect(page.locator("#experiment[data-old]")).to_have_count(0)
    expect(page.locator("details[open] > summary", has_text="Review")).to_be_focused()

    page = visitor.goto(f"/runs/{rows.run}")
    page.evaluate("document.querySelectorAll('main details').forEach((details) => { details.open = true })")
    violations["a score by a person"] = violations_of(page, axe, "a score by a person")

    page = visitor.goto(f"/datasets/{rows.dataset}/import")
    page.set_input_files("[name=file]", {"name": "rows.csv", "mimeType": "text/csv", "buffer": ROWS.encode()})
    page.get_by_role("button", name="Upload").click()
    page.wait_for_url("**/imports/*")
    violations["a preview"] = violations_of(page, axe, "a preview")
    header, row = (page.locator(f".preview-table {part} tr").first.bounding_box() for part in ("thead", "tbody"))
    cell = page.locator(".preview-table thead th").first.bounding_box()
    assert header["y"] == cell["y"] <= row["y"] - cell["height"] + 1
    page.get_by_role("button", name="Import").click()
    expect(page.locator("#import").or_(page.get_by_text("Line"))).not_to_have_count(0)

    page = visitor.goto(f"/agents/{rows.agent}/gates/add")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".field-error:visible").first).to_be_visible()
    violations["an error of a gate"] = violations_of(page, axe, "an error of a gate")

    page = visitor.open()  # the form of the gate would ask before it is left
    page.goto(f"{visitor.base_url}/datasets/{rows.dataset}/experiments/start")
    page.fill("[name=repeats]", "99")
    page.get_by_role("button", name="Run experiment").click()
    expect(page.locator(".field-error:visible").first).to_be_visible()
    violations["an error of an experiment"] = violations_of(page, axe, "an error of an experiment")

    assert {name: faults for name, faults in violations.items() if faults} == {}
