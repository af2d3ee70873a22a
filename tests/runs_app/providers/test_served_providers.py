"""Providers of a running copy, seen through the API."""

import json

import pytest

from tests.operations.running_copy import rows
from tests.provider_stub.server import KEY
from tests.served import Served, wait_until
from tests.served_accounts import serving_with_accounts

MODEL = {"provider": "openai", "name": "gpt-4.1"}


@pytest.fixture(scope="module")
def copy(running_provider_stub, tmp_path_factory):
    """Start a copy that uses the stub server for every provider."""
    environment = {**running_provider_stub.environment, "WEB_WORKERS": "1", "LOG_REQUESTS": "yes"}
    with serving_with_accounts(tmp_path_factory.mktemp("providers") / "var", **environment) as copy:
        yield copy


@pytest.fixture(scope="module")
def key(copy: Served) -> str:
    return copy.keys["publisher"]


@pytest.fixture
def agent(copy: Served, key: str):
    """Create an agent with two versions, the second live. Yield the client."""
    body = {"id": "porter", "name": "Porter", "instructions": "Carry bags.", "model": MODEL}
    with copy.client(key) as client:
        client.post("/api/stored/agents", json=body).raise_for_status()
        client.patch("/api/stored/agents/porter", json={"instructions": "Carry two bags."}).raise_for_status()
        yield client
        client.delete("/api/stored/agents/porter").raise_for_status()


def ask(client, text, **query):
    return client.post("/api/agents/porter/generate", params=query, json={"messages": text}, timeout=60)


def test_each_version_sends_its_own_instructions(agent, running_provider_stub):
    running_provider_stub.forget()

    answers = [ask(agent, "Hello"), ask(agent, "Hello", versionNumber=1)]

    assert [answer.json()["text"] for answer in answers] == ["Good evening to you, dear guest."] * 2
    systems = [request["body"]["messages"][0]["content"] for request in running_provider_stub.received_requests()]
    assert systems == ["Carry two bags.", "Carry bags."]


def test_a_missing_tool_is_logged_once_and_in_the_run(agent, copy):
    agent.patch("/api/stored/agents/porter", json={"tools": ["gone"]}).raise_for_status()

    ask(agent, "Hello")

    newest = agent.get("/api/runs").json()["runs"][0]
    run = agent.get(f"/api/runs/{newest['id']}").json()
    assert [warning["message"] for warning in run["warnings"]] == ["No tool is registered as 'gone'."]
    wait_until(lambda: "No tool is registered as 'gone'." in copy.log_text(), what="the log")
    assert copy.log_text().count("No tool is registered as 'gone'.") == 1


def test_a_provider_error_is_reported_without_the_key(agent, copy):
    answer = ask(agent, "You are asked too often")

    assert answer.status_code == 424
    assert "openai/gpt-4.1 receives too many requests" in answer.json()["error"]
    stored = str([rows(copy, f"SELECT * FROM {table}") for table in ("runs_app_runevent", "runs_app_agentrun")])
    assert KEY not in answer.text + stored + copy.log.read_text()


def test_the_provider_list_shows_which_are_connected(agent):
    providers = agent.get("/api/agents/providers").json()["providers"]

    assert {provider["id"]: provider["connected"] for provider in providers} == dict.fromkeys(
        ("demo", "openai", "anthropic", "google", "mistral"), True
    )
    assert KEY not in json.dumps(providers)


@pytest.fixture(scope="module")
def experiment(copy: Served, key: str, running_provider_stub):
    """Run an experiment with a judge over the stub server. Return it with its results."""
    running_provider_stub.forget()
    judge = {"id": "kind", "name": "Kind", "type": "llm-judge", "model": MODEL, "instructions": "Judge the greeting."}
    items = [{"input": "planted-question", "groundTruth": "planted-truth"}, {"input": "planted-failure"}]
    host = {"id": "host", "name": "Host", "instructions": "Greet.", "model": MODEL}
    with copy.client(key) as client:
        client.post("/api/stored/agents", json=host).raise_for_status()
        client.post("/api/stored/scorers", json=judge).raise_for_status()
        client.post("/api/datasets", json={"name": "Greetings"}).raise_for_status()
        client.post("/api/datasets/greetings/items/batch", json={"items": items}).raise_for_status()
        body = {"targetType": "agent", "targetId": "host", "scorerIds": ["kind", "exact"]}
        started = client.post("/api/datasets/greetings/experiments", json=body).raise_for_status().json()
        path = f"/api/datasets/greetings/experiments/{started['id']}"
        wait_until(lambda: client.get(path).json()["status"] == "completed", 60, "the end of the experiment")
        results = client.get(f"{path}/results").json()["results"]
        return client.get(path).json(), sorted(results, key=lambda result: result["input"])


def test_an_experiment_asks_the_provider_for_answers_and_for_scores(experiment, running_provider_stub):
    ended, (failed, answered) = experiment

    assert answered["output"] == "Good evening, planted-answer."
    scores = {entry["scorerId"]: (entry["score"], entry["reason"]) for entry in answered["scores"]}
    assert scores["kind"] == (0.75, "Planted-reason greets.")
    assert scores["exact"][0] == 0
    assert (failed["scores"], "Not planted-failure." in failed["error"]["message"]) == ([], True)
    assert (ended["succeededCount"], ended["failedCount"]) == (1, 1)
    assert ended["summary"]["scorers"]["kind"]["mean"] == 0.75
    assert answered["tokens"] == 25
    assert ended["summary"]["tokens"] >= 25
    assert ended["summary"]["cost"] >= answered["cost"] > 0
    prompts = [
        str(request["body"]["messages"][-1]["content"]) for request in running_provider_stub.received_requests()
    ]
    assert sum("<Rubric>" in prompt for prompt in prompts) == 1


def test_no_log_line_and_no_metric_has_the_contents_of_an_experiment(experiment, copy):
    with copy.client(copy.keys["root"]) as client:
        metrics = client.get("/metrics").raise_for_status().text

    assert 'agentcms_jobs{kind="run_experiment",state="done"}' in metrics
    wait_until(
        lambda: "POST /api/datasets/greetings/experiments 201" in copy.log_text(), what="the requests in the log"
    )
    assert "planted" not in (copy.log_text() + metrics).lower()
