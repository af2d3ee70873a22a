"""Experiments that a real worker runs: a cancellation and a spent budget stop them at once, and a restart does not."""

import uuid
from datetime import datetime

import pytest

from tests.conftest import DRILL
from tests.runs import LONG
from tests.served import wait_until

# Seconds until nothing starts any more, and until open runs have ended. A busy machine needs longer.
START_LIMIT, STOP_LIMIT = (1, 2) if DRILL else (3, 5)
SLOW, BRISK = ({"provider": "demo", "name": "echo", "delay": delay} for delay in (0.05, 0.02))
RESTARTED_ITEMS = 60


class Exam:
    """An agent, a dataset and an experiment of a running copy."""

    def __init__(self, client, model, inputs, **options):
        self.client, key = client, f"stopped-{uuid.uuid4().hex[:8]}"
        self.post("/api/stored/agents", id=key, name=key, instructions="", model=model)
        self.dataset = f"/api/datasets/{self.post('/api/datasets', name=key)['id']}"
        self.post(f"{self.dataset}/items/batch", items=[{"input": text} for text in inputs])
        started = self.post(f"{self.dataset}/experiments", targetType="agent", targetId=key, **options)
        self.path = f"{self.dataset}/experiments/{started['id']}"

    def post(self, path, **body):
        answer = self.client.post(path, json=body)
        assert answer.is_success, answer.text
        return answer.json()

    @property
    def experiment(self):
        return self.client.get(self.path).json()

    @property
    def results(self):
        return self.client.get(f"{self.path}/results", params={"perPage": 100}).json()["results"]

    def wait_for_end(self, seconds=60):
        wait_until(lambda: self.experiment["status"] not in ("pending", "running"), seconds, self.path)
        return self.experiment


@pytest.fixture
def client(served):
    with served.client(served.keys["python"]) as client:
        yield client


def seconds_between(first, second):
    return (datetime.fromisoformat(second) - datetime.fromisoformat(first)).total_seconds()


def test_a_cancellation_stops_the_open_runs_and_starts_no_more(client):
    exam = Exam(client, SLOW, [LONG] * 6, maxConcurrency=2)
    wait_until(lambda: len(exam.results) == 2, 30, "two open runs")

    exam.post(f"/api/experiments/{exam.experiment['id']}/cancel")
    cancelled_at = datetime.now().astimezone().isoformat()
    ended = exam.wait_for_end()

    assert (ended["status"], ended["metadata"], ended["skippedCount"]) == ("failed", {"cancelled": True}, 4)
    assert [result["error"]["code"] for result in exam.results] == ["stopped"] * 2
    assert all(seconds_between(cancelled_at, result["startedAt"]) <= START_LIMIT for result in exam.results)
    assert seconds_between(cancelled_at, ended["completedAt"]) <= STOP_LIMIT


def test_a_spent_budget_stops_the_open_runs_and_starts_no_more(client):
    texts = ["short", *[LONG] * 5]
    exam = Exam(client, SLOW, texts, maxConcurrency=2, budget={"maxTokens": 1})

    ended = exam.wait_for_end()

    spent_at = min(result["completedAt"] for result in exam.results)
    assert ended["stopReason"] == "The budget of 1 token is spent."
    assert (ended["status"], ended["succeededCount"], ended["skippedCount"]) == ("failed", 1, 4)
    assert all(seconds_between(spent_at, result["startedAt"]) <= START_LIMIT for result in exam.results)
    assert seconds_between(spent_at, ended["completedAt"]) <= STOP_LIMIT


@pytest.mark.drill
def test_an_experiment_continues_after_a_restart(own_served):
    with own_served.client(own_served.keys["python"]) as client:
        exam = Exam(client, BRISK, [f"Question {n}" for n in range(RESTARTED_ITEMS)], maxConcurrency=4)
        wait_until(lambda: exam.experiment["succeededCount"] >= 10, 60, "ten answers")

        own_served.stop()
        own_served.start()
        ended = exam.wait_for_end(180)

    assert (ended["status"], ended["succeededCount"], ended["failedCount"]) == ("completed", RESTARTED_ITEMS, 0)
