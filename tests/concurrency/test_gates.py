"""A release gate under parallel requests to four web processes, and under processes that use the code."""

import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from agentcms.server.processes import PROJECT
from tests.operations.running_copy import rows
from tests.served import wait_until
from tests.served_accounts import serving_with_accounts

AGENT = "/api/stored/agents/concierge"
REQUESTS = 20
# Each process tries all drafts repeatedly, and prints how often one went live.
TRY_ALL = """
from agents_app.editing.version_refusals import GateNotMet
from agents_app.editing.change_context import change
from versions_app.models import AgentVersion
done = 0
for _ in range(5):
    for version in AgentVersion.objects.filter(agent_id="concierge", version_number__gt=1):
        for act in (version.activate, version.restore):
            try:
                with change(publish=True):
                    done += bool(act())
            except GateNotMet:
                pass
print(done)
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """Start a copy with four web processes."""
    with serving_with_accounts(tmp_path_factory.mktemp("gates") / "var", WEB_WORKERS="4") as copy:
        yield copy


@pytest.fixture(scope="module")
def root(copy):
    """Return a client of a manager, with a gate that three drafts miss."""
    with copy.client(copy.keys["root"]) as client:
        new = {"id": "concierge", "name": "A", "instructions": "", "model": {"provider": "demo", "name": "echo"}}
        assert client.post("/api/stored/agents", json=new).status_code == 201
        assert client.post("/api/datasets", json={"id": "support", "name": "Support"}).status_code in (200, 201)
        item = {"input": "One", "groundTruth": "never"}
        assert client.post("/api/datasets/support/items", json=item).status_code in (200, 201)
        gate = {"datasetId": "support", "scorer": "exact", "min": 0.8}
        assert client.post(f"{AGENT}/gates", json=gate).status_code == 201
        for number in range(3):
            change = {"instructions": f"Draft {number}", "autoPublish": False}
            assert client.patch(AGENT, json=change).status_code == 200
        yield client


@pytest.fixture(scope="module")
def drafts(root):
    versions = root.get(f"{AGENT}/versions").json()["versions"]
    return [version["id"] for version in versions if version["versionNumber"] > 1]


def post_at_once(copy, calls):
    """Send requests in parallel, each over a connection of its own. Count their statuses and error codes."""

    def send(call):
        method, path, body = call
        with copy.client(copy.keys["publisher"]) as client:
            answer = client.request(method, path, json=body)
            return answer.status_code, answer.json().get("code", "")

    with ThreadPoolExecutor(len(calls)) as pool:
        return Counter(pool.map(send, calls))


def live_numbers(copy):
    """Return the numbers of all versions that were ever live."""
    moves = rows(copy, "SELECT to_version_number FROM versions_app_activation WHERE agent_id = 'concierge'")
    return {number for (number,) in moves}


def test_twenty_parallel_activations_are_all_refused(copy, root, drafts):
    ways = [
        *(("POST", f"{AGENT}/versions/{draft}/activate", {}) for draft in drafts),
        *(("POST", f"{AGENT}/versions/{draft}/restore", {"autoPublish": True}) for draft in drafts),
        ("PATCH", AGENT, {"instructions": "Now", "autoPublish": True}),
    ]

    answers = post_at_once(copy, [ways[number % len(ways)] for number in range(REQUESTS)])

    assert answers == {(409, "gate_not_met"): REQUESTS}
    assert live_numbers(copy) == {1}


def test_four_processes_that_use_the_code_are_refused(copy, root, drafts):
    command = [sys.executable, "manage.py", "shell", "-v", "0", "--no-imports", "-c", TRY_ALL]
    processes = [
        subprocess.Popen(command, env=copy.environment, cwd=PROJECT, stdout=subprocess.PIPE) for _ in range(4)
    ]

    assert [process.communicate(timeout=120)[0].strip() for process in processes] == [b"0"] * 4
    assert live_numbers(copy) == {1}


def test_saves_at_once_stay_drafts_and_a_met_gate_opens_once(copy, root):
    saves = [("PATCH", AGENT, {"instructions": f"Save {number}"}) for number in range(REQUESTS)]
    assert set(post_at_once(copy, saves)) == {(200, "")}
    assert live_numbers(copy) == {1}

    answer = root.patch("/api/datasets/support", json={"scorerIds": ["answer-length"]})
    assert answer.status_code == 200, answer.text
    gate = root.get(f"{AGENT}/gates").json()["gates"][0]["id"]
    root.patch(f"{AGENT}/gates/{gate}", json={"scorer": "answer-length", "min": 0.0})
    body = {"targetType": "agent", "targetId": "concierge", "agentVersion": "draft"}
    experiment = root.post("/api/datasets/support/experiments", json=body).json()
    path = f"/api/datasets/support/experiments/{experiment['experimentId']}"
    wait_until(lambda: root.get(path).json()["status"] == "completed", 60)

    draft = root.get(f"{AGENT}?status=draft").json()
    activate = ("POST", f"{AGENT}/versions/{draft['headVersionId']}/activate", {})
    assert set(post_at_once(copy, [activate] * REQUESTS)) == {(200, "")}
    moves = rows(copy, "SELECT to_version_id FROM versions_app_activation WHERE to_version_number > 1")
    assert len(moves) == 1
