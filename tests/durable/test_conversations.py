"""Conversations whose web server and worker are killed while signals, titles, indexing and observations go on."""

import json
import random
import re
import threading
import time
import uuid
from collections.abc import Iterator
from itertools import pairwise

import httpx
import pytest

from memory_app.history.token_estimate import count_tokens
from memory_app.recall.indexing import INDEX_MESSAGES
from tests.conftest import DRILL
from tests.durable.deployment import Deployment, conversing_deployment, wait_for_progress
from tests.durable.recording_model import RecordingModel, recording_model
from tests.operations.running_copy import rows
from tests.served import wait_until

THREADS = 4
SIGNALS = 200 if DRILL else 6
WEB_KILLS = 20 if DRILL else 1
WORKER_KILLS = 50 if DRILL else 1
MARK = re.compile(r"\bs(\d+)-(\d+)\b")
AGENT = "listener"
SECRET = "drill.example"  # of the addresses that an input processor masks
MODEL = {"provider": "mistral", "name": "recorded"}
MESSAGE_TOKENS, OBSERVATION_TOKENS = 600, 400  # of observational memory
INSTRUCTION_TOKENS = 200  # of the agent, and around observations
MEMORY = {
    "options": {"generateTitle": True, "semanticRecall": {"scope": "thread", "messageRange": 0}},
    "embedder": "mistral/recorded",
    "observationalMemory": {
        "observation": {"messageTokens": MESSAGE_TOKENS},
        "reflection": {"observationTokens": OBSERVATION_TOKENS},
    },
}


class Sender(threading.Thread):
    """The sender of the signals of a thread, one after the other. It repeats each until it is acknowledged."""

    def __init__(self, deployment: Deployment, number: int) -> None:
        super().__init__(daemon=True)
        self.deployment = deployment
        self.number = number
        self.key = f"thread-{number}-{uuid.uuid4().hex[:8]}"
        self.allowed = 0
        self.acknowledged: list[str] = []
        self.unexpected: list[str] = []
        self.stopping = threading.Event()

    @property
    def is_queued(self) -> bool:
        """The last thread has queued messages, each of which waits for a run of its own."""
        return self.number == THREADS - 1

    def run(self) -> None:
        with self.deployment.copy.client(self.deployment.copy.keys["root"]) as client:
            client.timeout = httpx.Timeout(15)
            while not self.stopping.wait(0.02):
                if len(self.acknowledged) < self.allowed:
                    self.send(client, f"s{self.number}-{len(self.acknowledged)}")

    def send(self, client: httpx.Client, mark: str) -> None:
        try:
            answer = client.post(f"/api/agents/{AGENT}/{self.route(mark)}", json=self.body(mark))
        except httpx.HTTPError:
            return
        if answer.status_code == 200:
            self.acknowledged.append(mark)
        elif answer.status_code not in (429, 502, 503):
            self.unexpected.append(f"{answer.status_code} {answer.text}")

    def is_message(self, mark: str) -> bool:
        return self.is_queued or int(mark.rpartition("-")[2]) % 2 == 0

    def route(self, mark: str) -> str:
        if self.is_queued:
            return "queue-message"
        return "send-message" if self.is_message(mark) else "signals"

    def body(self, mark: str) -> dict:
        text = f"Number {mark} of this conversation, with some more words about it, from ada@{SECRET}."
        target = {"threadId": self.key, "resourceId": "listeners"}
        if self.is_message(mark):
            return {"message": {"id": mark, "contents": text}, **target}
        attributes = {"source": f"bob@{SECRET}"}
        return {"signal": {"id": mark, "type": "notification", "contents": text, "attributes": attributes}, **target}


@pytest.fixture(scope="module")
def model() -> Iterator[RecordingModel]:
    with recording_model(0.2 if DRILL else 0.05) as server:
        yield server


@pytest.fixture(scope="module")
def deployment(tmp_path_factory, model) -> Iterator[Deployment]:
    agent = {"id": AGENT, "model": MODEL, "tools": [], "memory": MEMORY, "inputProcessors": [{"key": "mask-email"}]}
    with conversing_deployment(tmp_path_factory.mktemp("conversations"), model.environment, **agent) as deployment:
        yield deployment


def test_killed_processes_lose_and_repeat_no_signal(deployment, model):
    senders = [Sender(deployment, number) for number in range(THREADS)]
    for sender in senders:
        sender.start()
    try:
        kill_under_signals(deployment, senders)
        send_all(senders, SIGNALS + 1)  # the last one comes after the last kill
    finally:
        for sender in senders:
            sender.stopping.set()
            sender.join(30)
    wait_until_settled(deployment)

    for sender in senders:
        assert sender.unexpected == []
        assert_thread_complete(deployment, sender, model)
    assert_indexed(deployment)
    assert_masked(deployment, model)


# --- Kills


def kill_under_signals(deployment: Deployment, senders: list[Sender]) -> None:
    kills = ["web"] * WEB_KILLS + ["worker"] * WORKER_KILLS
    random.Random(7).shuffle(kills)
    for number, victim in enumerate(kills, 1):
        for sender in senders:
            sender.allowed = SIGNALS * number // len(kills)
        time.sleep(random.uniform(0, 1))
        wait_for_progress(deployment)
        deployment.kill(victim)
        deployment.start(victim)
    send_all(senders, SIGNALS)


def send_all(senders: list[Sender], count: int) -> None:
    for sender in senders:
        sender.allowed = count
    wait_until(
        lambda: all(len(sender.acknowledged) == count for sender in senders),
        300,
        f"{count} signals; {[(len(sender.acknowledged), sender.unexpected[-1:]) for sender in senders]}",
    )


UNSETTLED = """
SELECT (SELECT COUNT(*) FROM runs_app_agentrun WHERE finished_at IS NULL)
  + (SELECT COUNT(*) FROM jobs_app_job WHERE state IN ('queued', 'running'))
  + (SELECT COUNT(*) FROM runs_app_message WHERE role = 'signal' AND seen_by IS NULL)
"""


def wait_until_settled(deployment: Deployment) -> None:
    wait_until(lambda: rows(deployment.copy, UNSETTLED) == [(0,)], 240, f"the last run; see {deployment.copy.log}")


# --- Checks


def assert_thread_complete(deployment: Deployment, sender: Sender, model: RecordingModel) -> None:
    """Check the thread as the API shows it, its runs, its title and its observations."""
    thread, messages = read_thread(deployment, sender)
    assert [message["id"] for message in messages if MARK.fullmatch(message["id"])] == sender.acknowledged
    assert len(sender.acknowledged) == SIGNALS + 1
    answers = [part["text"] for message in messages if message["role"] == "assistant" for part in text_parts(message)]
    assert len(set(answers)) == len(answers)
    assert set(answers) <= set(model.requests)
    assert thread["title"] in {title.strip(".") for title in model.of_kind("Title")} | set(model.of_kind("Title"))
    assert_runs_saw_their_signals(deployment, sender, model)
    assert_observed_without_gaps(deployment, sender)


def read_thread(deployment: Deployment, sender: Sender) -> tuple[dict, list[dict]]:
    path = f"/api/memory/threads/{sender.key}"
    with deployment.copy.client(deployment.copy.keys["root"]) as client:
        thread = client.get(path, params={"resourceId": "listeners"}).json()
        order = json.dumps({"field": "createdAt", "direction": "ASC"})
        parameters = {"resourceId": "listeners", "perPage": 1000, "orderBy": order}
        return thread, client.get(f"{path}/messages", params=parameters).json()["messages"]


def text_parts(message: dict) -> list[dict]:
    return [part for part in message["content"]["parts"] if part["type"] == "text"]


def assert_runs_saw_their_signals(deployment: Deployment, sender: Sender, model: RecordingModel) -> None:
    """Check that each signal belongs to one run that succeeded, and that its model was given it once and in order."""
    thread = f"(SELECT id FROM runs_app_thread WHERE key = '{sender.key}')"
    runs = rows(
        deployment.copy,
        f"SELECT id, status, error FROM runs_app_agentrun WHERE thread_id = {thread} ORDER BY started_at",
    )
    assert [run for run in runs if run[1:] != ("succeeded", "")] == []
    stored = rows(
        deployment.copy,
        f"SELECT key, role, text, seen_by, run_id FROM runs_app_message WHERE thread_id = {thread} ORDER BY number",
    )
    seen: dict[str, list[str]] = {}
    for key, role, _, seen_by, _ in stored:
        if role == "signal":
            seen.setdefault(str(seen_by), []).append(key)
    answers = {str(run_id): text for _, role, text, _, run_id in stored if role == "assistant"}  # the last of each run
    order = [str(run[0]) for run in runs]
    assert list(seen) == order
    assert not sender.is_queued or all(len(keys) == 1 for keys in seen.values())
    for run_id, keys in seen.items():
        assert_window_bounded(model.requests[answers[run_id]], number_of(keys[0]))
        marks = marks_of(model.requests[answers[run_id]])
        assert marks == sorted(set(marks))
        assert [number_of(key) for key in keys] == marks[len(marks) - len(keys) :]


def assert_window_bounded(messages: list[dict], first: int) -> None:
    """Check the size of what a run was given before its first own signal, and of the observations before that."""
    own = next(index for index, message in enumerate(messages) if first in marks_of([message]))
    history = [message for message in messages[:own] if message["role"] != "system"]
    system = "".join(str(message["content"]) for message in messages if message["role"] == "system")
    assert sum(count_tokens(str(message["content"])) for message in history) <= 1.2 * MESSAGE_TOKENS
    assert count_tokens(system) <= 1.2 * OBSERVATION_TOKENS + INSTRUCTION_TOKENS


def marks_of(messages: list[dict]) -> list[int]:
    """Return the numbers of the signals in a request, without those in instructions."""
    texts = [str(message["content"]) for message in messages if message["role"] == "user"]
    return [int(match[2]) for text in texts for match in MARK.finditer(text)]


def number_of(mark: str) -> int:
    return int(mark.rpartition("-")[2])


def assert_observed_without_gaps(deployment: Deployment, sender: Sender) -> None:
    """Check that the observations of each generation cover the messages from the first on, each once."""
    observations = rows(
        deployment.copy,
        "SELECT generation, first, last FROM memory_app_observation WHERE thread_id = "
        f"(SELECT id FROM runs_app_thread WHERE key = '{sender.key}') ORDER BY generation, first",
    )
    assert observations
    for before, after in pairwise(observations):
        assert after[1] == (before[2] + 1 if after[0] == before[0] else 1)


def assert_indexed(deployment: Deployment) -> None:
    """Check that each text has vectors, and that no job about memory failed."""
    missing = """
    SELECT COUNT(*) FROM runs_app_message m WHERE m.text <> '' AND m.role IN ('user', 'assistant')
    AND NOT EXISTS (SELECT 1 FROM memory_app_vector v WHERE v.message_id = m.id)
    """
    assert rows(deployment.copy, missing) == [(0,)]
    assert rows(deployment.copy, f"SELECT COUNT(*) > 0 FROM jobs_app_job WHERE kind = '{INDEX_MESSAGES}'")[0][0]
    assert rows(deployment.copy, "SELECT kind, error FROM jobs_app_job WHERE state = 'failed'") == []


def assert_masked(deployment: Deployment, model: RecordingModel) -> None:
    """Check that no model was given what the input processor masks, and that no row of the memory has it."""
    assert [answer for answer, messages in model.requests.items() if SECRET in json.dumps(messages)] == []
    for table, columns in {
        "runs_app_message": "text, data, attributes, delivery",
        "memory_app_observation": "text",
        "runs_app_thread": "title",
    }.items():
        assert [row for row in rows(deployment.copy, f"SELECT {columns} FROM {table}") if SECRET in str(row)] == []
