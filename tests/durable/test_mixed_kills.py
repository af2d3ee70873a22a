"""Killing web servers and workers under runs with approvals, questions, sub-agents and background tasks."""

import contextlib
import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator

import httpx
import pytest

from tests.conftest import DRILL
from tests.durable.deployment import AGENT, WORKER_WITH_BEAT, Broker, Deployment, wait_for_readers
from tests.durable.test_deployments import wait_for_progress
from tests.operations.running_copy import rows
from tests.served import wait_until
from tests.served_accounts import prepared

KILLS = 60 if DRILL else 3
RUNS = 8 if DRILL else 2
PAUSE = 0.2  # seconds that a call works
PAUSES = 2 if DRILL else 1  # seconds between the starts and the next kill, at most
DECLINED = "B"  # the order of the payments that nobody approves

PLAN = [
    [["pay-once", {"order": "A", "pause": PAUSE}], ["pay-once", {"order": DECLINED}], ["work", {"pause": PAUSE}]],
    [["agent-helper", {"prompt": "Pay"}]],
    [["agent-clerk", {"prompt": "File"}]],
    [["ask-person", {"question": "Which size?"}]],
    [["work", {"pause": PAUSE}]],
    "Done.",
]
# How each tree of runs asks people, by agent, kind and end.
EXPECTED_CALLS = {
    (AGENT, "approval", "approved"),
    (AGENT, "approval", "declined"),
    (AGENT, "suspend", "resumed"),
    ("helper", "approval", "approved"),
    ("clerk", "approval", "approved"),
}


class Decider(threading.Thread):
    """A person who decides each call that waits, through servers that die. `decided` are the acknowledged ones."""

    def __init__(self, deployment: Deployment) -> None:
        super().__init__(daemon=True)
        self.deployment = deployment
        self.decided: list[str] = []
        self.unexpected: list[str] = []
        self.stopping = threading.Event()

    def run(self) -> None:
        with self.deployment.copy.client(self.deployment.copy.keys["root"]) as client:
            client.timeout = httpx.Timeout(15)
            while not self.stopping.wait(0.1):
                with contextlib.suppress(httpx.HTTPError):
                    self.decide_all(client)

    def decide_all(self, client: httpx.Client) -> None:
        listed = client.get("/api/approvals?perPage=100")
        for call in listed.json()["approvals"] if listed.status_code == 200 else []:
            answer = client.post(f"/api/approvals/{call['id']}", json={"mark": call["mark"], **self.decision(call)})
            if answer.status_code == 200:
                self.decided.append(call["id"])
            elif answer.status_code not in (502, 503):
                self.unexpected.append(f"{answer.status_code} {answer.text}")

    def decision(self, call: dict) -> dict:
        if call["kind"] == "suspend":
            return {"decision": "resume", "resumeData": {"size": "M"}}
        is_declined = call["args"]["order"] == DECLINED
        return {"decision": "decline", "reason": "Not this one."} if is_declined else {"decision": "approve"}


@pytest.fixture
def deployment(tmp_path) -> Iterator[Deployment]:
    broker = Broker(tmp_path / "valkey")
    with prepared(tmp_path / "var", JOB_LEASE="2", WEB_WORKERS="1", RUNS_SUSPENDED_PER_USER="500") as copy:
        deployment = Deployment(copy, broker, worker=WORKER_WITH_BEAT)
        try:
            deployment.start("web", "worker")
            deployment.wait_until_ready()
            create_agents(deployment)
            yield deployment
        finally:
            deployment.stop()
            broker.remove()


def create_agents(deployment: Deployment) -> None:
    for name in ("helper", "clerk"):
        plan = [[["pay-once", {"order": name, "pause": PAUSE}]], f"The {name} has paid."]
        model = {"provider": "planned", "name": "plan", "plan": plan}
        deployment.create_agent(0, id=name, name=name, model=model, tools=["pay-once"])
    deployment.create_agent(
        0,
        model={"provider": "planned", "name": "plan", "plan": PLAN, "notes_prompt": True},
        tools=["pay-once", "work", "ask-person"],
        agents=["helper", "clerk"],
        backgroundTasks={"tools": {"clerk": {"enabled": True, "disposition": "deferred"}}},
    )


def test_killed_processes_lose_no_run_and_no_decision_and_repeat_no_payment(deployment):
    decider = Decider(deployment)
    decider.start()
    try:
        for kill in range(KILLS):
            deployment.start_runs(RUNS - len(deployment.unfinished()))
            wait_for_progress(deployment)
            time.sleep(random.uniform(0, PAUSES))
            wait_for_unlucky_runs(deployment)
            victims = (("worker",), ("web",), ("web", "worker"))[kill % 3]
            deployment.kill(*victims)
            deployment.start(*victims)
        wait_for_readers(deployment.readers, 240)
        open_tasks = "SELECT COUNT(*) FROM runs_app_backgroundtask WHERE finished_at IS NULL"
        wait_until(lambda: rows(deployment.copy, open_tasks) == [(0,)], 120, f"the tasks; see {deployment.copy.log}")
    finally:
        decider.stopping.set()
        decider.join(30)

    assert decider.unexpected == []
    assert_all_ended(deployment)
    for reader in deployment.readers:
        assert_complete(deployment, reader)
    assert_decisions(deployment, decider)
    assert_paid_once(deployment)


def wait_for_unlucky_runs(deployment: Deployment) -> None:
    """Wait until each run has finished a step whose last two processes were killed: a third kill would end the run."""
    unlucky = "SELECT COUNT(*) FROM runs_app_agentrun WHERE finished_at IS NULL AND attempts > 1"
    wait_until(lambda: rows(deployment.copy, unlucky) == [(0,)], 60, f"the runs; see {deployment.copy.log}")


def assert_all_ended(deployment: Deployment) -> None:
    """Check that each run and each task has succeeded, once for each message."""
    count = len(deployment.readers)
    runs = rows(deployment.copy, "SELECT agent_key, status, error FROM runs_app_agentrun")
    assert Counter(runs) == {(name, "succeeded", ""): count for name in (AGENT, "helper", "clerk")}
    tasks = rows(deployment.copy, "SELECT status, error FROM runs_app_backgroundtask")
    assert Counter(tasks) == {("completed", ""): count}


def assert_complete(deployment: Deployment, reader) -> None:
    """Check that a reader has got each event once, and that no answer of the model was asked for again."""
    assert reader.unexpected == []
    assert reader.numbers == [*range(1, len(reader.numbers) + 1)]
    kinds = Counter(chunk["type"] for chunk in reader.chunks)
    assert (kinds["start"], kinds["finish"], kinds["tool-call"], kinds["tool-result"]) == (1, 1, 7, 7), reader.run_id
    requests = [int(note[2]) for note in deployment.notes("request") if note[1] == reader.key]
    assert requests == sorted(requests)
    assert {*requests} == {*range(len(PLAN))}


def assert_decisions(deployment: Deployment, decider: Decider) -> None:
    """Check that each call was asked for once, and that each acknowledged decision is stored."""
    calls = rows(deployment.copy, "SELECT id, agent_key, kind, state, decided_by_id FROM runs_app_pendingcall")
    count = len(deployment.readers)
    # A run waits for its sub-agent only if nobody was faster.
    for_people = [call for call in calls if call[2] != "child"]
    assert Counter(call[1:4] for call in for_people) == dict.fromkeys(EXPECTED_CALLS, count)
    assert all(call[4] is not None for call in for_people)
    assert {uuid.UUID(call) for call in decider.decided} <= {uuid.UUID(str(call[0])) for call in for_people}


def assert_paid_once(deployment: Deployment) -> None:
    """Check that no payment was made twice or without approval, and that the models know of those that were made."""
    begun = Counter(note[1] for note in deployment.notes("pay") if note[2] == "begins")
    ended = Counter(note[1] for note in deployment.notes("pay") if note[2] == "ends")
    approved = "SELECT run_id, call_id FROM runs_app_pendingcall WHERE kind = 'approval' AND state = 'approved'"
    keys = {f"{uuid.UUID(str(run_id))}:{call_id}" for run_id, call_id in rows(deployment.copy, approved)}
    assert {*begun.values(), *ended.values()} == {1}
    assert begun.keys() <= keys
    question = "SELECT run_id, key FROM runs_app_runstep WHERE name = 'pay-once' AND result LIKE '%paid%'"
    if deployment.copy.environment.get("DATABASE_URL"):
        question = question.replace("result LIKE", "result::text LIKE")
    reported_keys = {
        f"{uuid.UUID(str(run_id))}:{key.split('/')[2]}" for run_id, key in rows(deployment.copy, question)
    }
    assert reported_keys <= ended.keys()
