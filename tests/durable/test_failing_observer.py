"""A long conversation whose observer always fails, while its web server and worker are killed."""

import json
import random
import re
import threading
import time
from collections.abc import Iterator

import httpx
import pytest

from memory_app.history.token_estimate import count_tokens
from memory_app.observational.jobs import OBSERVE_THREAD
from tests.conftest import DRILL
from tests.durable.deployment import Deployment, conversing_deployment, wait_for_progress
from tests.durable.recording_model import RecordingModel, recording_model
from tests.operations.running_copy import rows
from tests.served import wait_until

EARLIER = 2000 if DRILL else 80  # messages that the thread has before
WEB_KILLS = 20 if DRILL else 1
WORKER_KILLS = 50 if DRILL else 1
AGENT, THREAD, RESOURCE = "listener", "long", "listeners"
MESSAGE_TOKENS = 600
MARK = re.compile(r"\bm(\d+)\b")
MEMORY = {
    "options": {},
    "observationalMemory": {
        "observation": {"messageTokens": MESSAGE_TOKENS},
        "reflection": {"observationTokens": 400},
    },
}


@pytest.fixture(scope="module")
def model() -> Iterator[RecordingModel]:
    with recording_model(0.05) as server:
        server.failing.add("Notes")
        yield server


@pytest.fixture(scope="module")
def deployment(tmp_path_factory, model) -> Iterator[Deployment]:
    agent = {"id": AGENT, "model": {"provider": "mistral", "name": "recorded"}, "tools": [], "memory": MEMORY}
    with conversing_deployment(tmp_path_factory.mktemp("observer"), model.environment, **agent) as deployment:
        yield deployment


class Asker(threading.Thread):
    """A client that sends one message after the other, and repeats each until it is acknowledged."""

    def __init__(self, deployment: Deployment) -> None:
        super().__init__(daemon=True)
        self.deployment = deployment
        self.allowed = 0
        self.acknowledged: list[str] = []
        self.unexpected: list[str] = []
        self.stopping = threading.Event()

    def run(self) -> None:
        with self.deployment.copy.client(self.deployment.copy.keys["root"]) as client:
            client.timeout = httpx.Timeout(15)
            while not self.stopping.wait(0.02):
                if len(self.acknowledged) < self.allowed:
                    self.send(client, f"m{EARLIER + len(self.acknowledged)}")

    def send(self, client: httpx.Client, mark: str) -> None:
        message = {"id": mark, "contents": f"Question {mark} of this conversation."}
        body = {"message": message, "threadId": THREAD, "resourceId": RESOURCE}
        try:
            answer = client.post(f"/api/agents/{AGENT}/queue-message", json=body)
        except httpx.HTTPError:
            return
        if answer.status_code == 200:
            self.acknowledged.append(mark)
        elif answer.status_code not in (429, 502, 503):
            self.unexpected.append(f"{answer.status_code} {answer.text}")


def fill_thread(deployment: Deployment) -> None:
    """Give the thread its earlier messages, of questions and answers in turn."""
    with deployment.copy.client(deployment.copy.keys["root"]) as client:
        path, body = f"/api/memory/threads?agentId={AGENT}", {"threadId": THREAD, "resourceId": RESOURCE}
        assert client.post(path, json=body).status_code == 201
        for start in range(0, EARLIER, 500):
            items = [
                {
                    "id": f"m{number}",
                    "threadId": THREAD,
                    "resourceId": RESOURCE,
                    "role": "assistant" if number % 2 else "user",
                    "content": f"Message m{number} of this conversation, with some more words about it.",
                }
                for number in range(start, min(start + 500, EARLIER))
            ]
            assert client.post("/api/memory/save-messages", json={"messages": items}).status_code == 200


def test_runs_answer_although_the_observer_always_fails(deployment, model):
    fill_thread(deployment)
    asker = Asker(deployment)
    asker.start()
    kills = ["web"] * WEB_KILLS + ["worker"] * WORKER_KILLS
    random.Random(5).shuffle(kills)
    try:
        for number, victim in enumerate(kills, 1):
            asker.allowed = number
            time.sleep(random.uniform(0, 1))
            wait_for_progress(deployment)
            deployment.kill(victim)
            deployment.start(victim)
        asker.allowed = len(kills) + 2
        wait_until(lambda: len(asker.acknowledged) == asker.allowed, 300, f"all messages; {asker.unexpected[-1:]}")
    finally:
        asker.stopping.set()
        asker.join(30)
    wait_until_answered(deployment, asker)

    assert asker.unexpected == []
    assert model.refused
    assert rows(deployment.copy, "SELECT COUNT(*) FROM memory_app_observation") == [(0,)]
    assert_all_answered(deployment, asker, model)


def wait_until_answered(deployment: Deployment, asker: Asker) -> None:
    question = (
        "SELECT (SELECT COUNT(*) FROM runs_app_agentrun WHERE finished_at IS NULL) "
        "+ (SELECT COUNT(*) FROM runs_app_message WHERE role = 'signal' AND seen_by IS NULL)"
    )
    wait_until(lambda: rows(deployment.copy, question) == [(0,)], 240, f"the last run; see {deployment.copy.log}")


def assert_all_answered(deployment: Deployment, asker: Asker, model: RecordingModel) -> None:
    """Check that each message has one run that ended well, with a bounded and contiguous window and a warning."""
    runs = rows(deployment.copy, "SELECT id, status, warnings FROM runs_app_agentrun ORDER BY started_at")
    assert {status for _, status, _ in runs} == {"succeeded"}
    assert len(runs) == len(asker.acknowledged)
    for _, _, warnings in runs:
        assert "could not be observed in time" in (warnings if isinstance(warnings, str) else json.dumps(warnings))
    stored = rows(
        deployment.copy,
        "SELECT key, role, text, seen_by, run_id FROM runs_app_message WHERE number > 0 ORDER BY number",
    )
    answers = {str(run_id): text for _, role, text, _, run_id in stored if role == "assistant" and run_id}
    for key, role, _, seen_by, _ in stored:
        if role == "signal":
            assert_window(model.requests[answers[str(seen_by)]], int(key[1:]))
    assert [key for key, role, *_ in stored if role == "signal"] == asker.acknowledged
    failed = f"SELECT COUNT(*) > 0 FROM jobs_app_job WHERE kind = '{OBSERVE_THREAD}' AND state = 'failed'"
    assert rows(deployment.copy, failed)[0][0]


def assert_window(messages: list[dict], number: int) -> None:
    """Check the messages before a question: those just before it, without a gap, as many as fit."""
    own = next(index for index, message in enumerate(messages) if number in marks_of(message))
    history = [message for message in messages[:own] if message["role"] != "system"]
    tokens = sum(count_tokens(str(message["content"])) for message in history)
    assert 0.6 * MESSAGE_TOKENS <= tokens <= 1.2 * MESSAGE_TOKENS
    marks = [mark for message in history for mark in marks_of(message)]
    assert marks == [*range(number - len(marks), number)]


def marks_of(message: dict) -> list[int]:
    return [int(mark) for mark in MARK.findall(str(message["content"]))]
