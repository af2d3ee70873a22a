"""Accessibility of datasets, experiments, knowledge bases, conversations and background tasks, checked by axe-core."""

import uuid
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.site.test_accessibility import find_violations
from tests.served import wait_until

MARKS_IN_LABELS = """() => [...document.querySelectorAll("td[data-label] :is(ins, del)")].filter((mark) =>
    mark.getBoundingClientRect().left < mark.closest("td").getBoundingClientRect().left + 96).length"""


def post(api: httpx.Client, path: str, body: dict[str, Any]) -> Any:
    response = api.post(f"/api{path}", json=body)
    assert response.is_success, response.text
    return response.json()


@pytest.fixture
def experiments(api: httpx.Client, agent: str) -> list[str]:
    """Run two versions of the agent over a dataset. Return the paths of the pages, the comparison last."""
    dataset = post(api, "/datasets", {"name": f"Questions {agent}", "scorerIds": ["answer-length"]})["id"]
    for text in ("When do you open?", "Where are you?"):
        item = post(api, f"/datasets/{dataset}/items", {"input": text, "groundTruth": "At nine."})
    ids = [start_experiment(api, dataset, agent, version) for version in (1, 2)]
    pages = [f"/experiments/{experiment}" for experiment in ids]
    pages += ["/datasets", f"/datasets/{dataset}", f"/datasets/{dataset}/items/{item['id']}/history"]
    pages += [f"/datasets/{dataset}/experiments/start", "/scorers", "/new-scorer", add_scorer(api)]
    return [*pages, f"/agents/{agent}/quality", f"/experiments/compare?a={ids[0]}&b={ids[1]}"]


def add_scorer(api: httpx.Client) -> str:
    """Create a scorer. Return the path of its page."""
    check = {"name": f"Check {uuid.uuid4().hex[:8]}", "type": "check", "presetConfig": {"check": "no-tool-errors"}}
    return f"/scorers/{post(api, '/stored/scorers', check)['id']}"


def start_experiment(api: httpx.Client, dataset: str, agent: str, version: int) -> str:
    body = {"targetType": "agent", "targetId": agent, "agentVersion": str(version)}
    experiment: str = post(api, f"/datasets/{dataset}/experiments", body)["experimentId"]
    url = f"/api/datasets/{dataset}/experiments/{experiment}"
    wait_until(lambda: api.get(url).json()["status"] == "completed", 60, "the experiment")
    return experiment


@pytest.fixture
def conversation(api: httpx.Client) -> list[str]:
    """Start a background task in a conversation. Return the paths of the pages that show both, and their memories."""
    agent = add_agent(api, "counter", {"enabled": True}, tools=["stock-count"])
    options = {"messages": "stock-count tea", "memory": {"thread": agent, "resource": agent}}
    run = post(api, f"/agents/{agent}/generate", options)["runId"]
    profiled = add_agent(api, "profile", {"enabled": True, "schema": {"properties": {"age": {"type": "integer"}}}})
    post(
        api,
        f"/agents/{profiled}/generate",
        {"messages": "Hello", "memory": {"thread": profiled, "resource": profiled}},
    )
    beside = [f"/threads/{thread}/working-memory" for thread in (agent, profiled)]
    beside.append(f"/threads/{agent}/participants")
    return ["/threads", f"/threads/{agent}", *beside, "/background-tasks", f"/runs/{run}"]


def add_agent(api: httpx.Client, name: str, memory: dict[str, Any], **fields: Any) -> str:
    """Create an agent with a working memory. Return its ID."""
    agent = f"{name}-{uuid.uuid4().hex[:8]}"
    fields |= {"model": {"provider": "demo", "name": "echo"}, "memory": {"options": {"workingMemory": memory}}}
    post(api, "/stored/agents", {"id": agent, "name": "Counter", "instructions": "Count.", **fields})
    return agent


@pytest.fixture
def knowledge(api: httpx.Client) -> list[str]:
    """Create a knowledge base with a document. Return the paths of its pages."""
    base = f"manual-{uuid.uuid4().hex[:8]}"
    post(api, "/knowledge", {"id": base, "name": "Manual", "embedder": "local/multilingual"})
    document = post(api, f"/knowledge/{base}/documents", {"name": "Ports", "text": "The router has the port eighty."})
    own = ["?q=port", "/settings", "/delete", f"/documents/{document['id']}", f"/documents/{document['id']}/delete"]
    return ["/knowledge", "/knowledge/+new", *(f"/knowledge/{base}{path}" for path in own)]


def test_pages_of_data_break_no_rule(
    visit: Any, axe: str, experiments: list[str], conversation: list[str], knowledge: list[str]
):
    visitor = visit()

    violations = {path: find_violations(visitor.goto(path), axe) for path in (*conversation, *knowledge, *experiments)}

    assert {path: faults for path, faults in violations.items() if faults} == {}
    page = visitor.page
    expect(page.get_by_role("columnheader", name="Change")).to_be_attached()
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.evaluate(MARKS_IN_LABELS) == 0  # marked words stay in the column of their text
    page.set_viewport_size({"width": 780, "height": 1024})
    assert page.evaluate("document.documentElement.scrollWidth") == 780
    assert visitor.console == []
