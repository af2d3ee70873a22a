"""Concurrent writes over HTTP to a copy with several web processes."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from uuid import uuid4

import httpx
import pytest

AGENTS = "/api/stored/agents"
MODEL = {"provider": "demo", "name": "echo"}
CLIENTS, EDITS = 32, 20


@pytest.fixture(scope="module")
def key(served):
    return served.keys["root"]


@pytest.fixture
def client(served, key) -> Iterator[httpx.Client]:
    with served.client(key) as client:
        yield client


@pytest.fixture
def path(client):
    """Create an agent and return its path."""
    agent_id = f"agent-{uuid4().hex[:8]}"
    assert create(client, agent_id).status_code == 201
    return f"{AGENTS}/{agent_id}"


def create(client, agent_id, name="Concierge"):
    return client.post(AGENTS, json={"id": agent_id, "name": name, "instructions": "Greet.", "model": MODEL})


def run_concurrently(acts):
    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(lambda act: act(), acts))


def check_agent(client, path):
    """Check live and head against the versions. Return the agent and its versions."""
    live, head = client.get(path).json(), client.get(path, params={"status": "draft"}).json()
    versions = {version["id"]: version for version in client.get(f"{path}/versions?perPage=1000").json()["versions"]}
    for agent, pointer in ((live, "activeVersionId"), (head, "headVersionId")):
        snapshot = versions[agent[pointer]]["snapshot"]
        assert {name: agent[name] for name in snapshot} == snapshot
    return live, sorted(versions.values(), key=lambda version: version["versionNumber"])


def test_each_concurrent_edit_returns_its_own_version(served, key, client, path):
    def edit_often(number):
        with served.client(key) as own:
            answers = [own.patch(path, json={"description": f"{number}/{n}"}) for n in range(EDITS)]
        return [(answer.status_code, answer.json()) for answer in answers]

    answers = [item for some in run_concurrently([partial(edit_often, n) for n in range(CLIENTS)]) for item in some]

    live, versions = check_agent(client, path)
    assert Counter(status for status, _ in answers) == {200: CLIENTS * EDITS}
    assert sorted(item["activeVersionNumber"] for _, item in answers) == list(range(2, 2 + CLIENTS * EDITS))
    answered = {item["activeVersionNumber"]: item["description"] for _, item in answers}
    stored = {item["versionNumber"]: item["snapshot"]["description"] for item in versions}
    assert all(answered[number] == text for number, text in stored.items())
    assert [item["versionNumber"] for item in versions] == list(range(592, 642))  # the default limit of versions is 50
    assert live["description"] == answered[641]


def test_concurrent_edits_of_different_fields_are_all_kept(client, path):
    edits = {"name": "N", "description": "D", "instructions": "I", "memory": "m", "tools": ["t"], "metadata": {"k": 1}}

    answers = run_concurrently([partial(client.patch, path, json={name: value}) for name, value in edits.items()])

    live, _ = check_agent(client, path)
    assert {answer.status_code for answer in answers} == {200}
    assert {name: live[name] for name in edits} == edits


def test_concurrent_creates_of_one_id_create_one_agent(client):
    agent_id = f"agent-{uuid4().hex[:8]}"

    answers = run_concurrently([partial(create, client, agent_id, f"Agent {number}") for number in range(10)])

    live, versions = check_agent(client, f"{AGENTS}/{agent_id}")
    assert Counter(answer.status_code for answer in answers) == {201: 1, 409: 9}
    assert [live["name"]] == [answer.json()["name"] for answer in answers if answer.status_code == 201]
    assert len(versions) == 1


def test_concurrent_actions_leave_valid_pointers_and_no_server_error(served, key, client, path):
    def some(own, number):
        versions = own.get(f"{path}/versions").json().get("versions", [])
        return versions[number % len(versions)]["id"] if versions else "gone"

    acts = {
        "edit": lambda own, n: own.patch(path, json={"description": str(n)}),
        "draft": lambda own, n: own.patch(path, json={"name": f"Draft {n}", "autoPublish": False}),
        "activate": lambda own, n: own.post(f"{path}/versions/{some(own, n)}/activate"),
        "restore": lambda own, n: own.post(f"{path}/versions/{some(own, n)}/restore"),
        "remove": lambda own, n: own.delete(f"{path}/versions/{some(own, n)}"),
        "snapshot": lambda own, n: own.post(f"{path}/versions", json={"name": f"{n}"}),
        "discard": lambda own, n: own.post(f"{path}/discard-draft"),
        "undo": lambda own, n: own.post(f"{path}/activations/undo"),
        "delete": lambda own, n: (own.delete(path), create(own, path.rpartition("/")[2]))[1],
    }

    def repeat(act):
        with served.client(key) as own:
            return [act(own, number).status_code for number in range(12)]

    statuses = dict(zip(acts, run_concurrently([partial(repeat, act) for act in acts.values()]), strict=True))

    assert {status for group in statuses.values() for status in group} <= {200, 201, 400, 404, 409}, statuses
    assert set(statuses["delete"]) == {201}
    check_agent(client, path)
