"""Many clients that use the same threads and resources of a served copy at once, in all ways that the API has."""

import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import httpx
import pytest

from tests.conftest import DRILL
from tests.durable.deployment import LIMITS
from tests.operations.running_copy import rows
from tests.served import Served, wait_until
from tests.served_accounts import serving_with_accounts

CLIENTS = 16
CALLS = 150 if DRILL else 12  # of each client in each round
THREADS = [f"race-{number}" for number in range(4)]
KEPT = "kept"  # nobody deletes this thread, nor the data of its resource
RESOURCES = ("alice", "bob")
AGENT = "racer"
MEMORY = {"options": {"workingMemory": {"scope": "resource", "template": "# Person"}, "generateTitle": True}}
EXPECTED = {200, 201, 400, 403, 404, 409, 429}  # 400 for a resource that another client has just changed
TEXT_TABLES = (
    "runs_app_agentrun",
    "runs_app_message",
    "runs_app_runevent",
    "runs_app_thread",
    "memory_app_resource",
    "memory_app_workingrevision",
)


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("races") / "var"
    with serving_with_accounts(folder, API_RATE="0", **LIMITS) as served:
        model = {"provider": "demo", "name": "echo", "delay": 0}
        body = {"id": AGENT, "name": "Racer", "instructions": "", "model": model, "memory": MEMORY}
        with served.client(served.keys["editor"]) as client:
            assert client.post("/api/stored/agents", json=body).status_code == 201
        yield served


class Racer(threading.Thread):
    """A client that sends random requests about the same threads. Each text has the mark of the round."""

    def __init__(self, copy: Served, number: int, mark: str, resources: Sequence[str]) -> None:
        super().__init__(daemon=True)
        self.copy, self.mark, self.resources = copy, mark, resources
        self.random = random.Random(f"{number} {mark}")
        self.saved_ids: list[str] = []  # the IDs of messages in the kept thread that were acknowledged
        self.notes = 0  # acknowledged changes of the working memory of the kept thread
        self.outcomes: Counter[tuple[str, int]] = Counter()
        self.unexpected: list[str] = []

    @property
    def acts(self) -> dict[Callable[[], httpx.Response], int]:
        return {
            self.create: 6,
            self.save: 8,
            self.run_agent: 4,
            self.send_message: 3,
            self.note: 4,
            self.clone: 2,
            self.transfer: 1,
            self.delete_messages: 3,
            self.delete_thread: 2,
            self.read: 3,
        }

    def run(self) -> None:
        acts = self.acts
        with self.copy.client(self.copy.keys["editor"]) as self.client:
            for _ in range(CALLS):
                (act,) = self.random.choices([*acts], [*acts.values()])
                answer = act()
                self.outcomes[act.__name__, answer.status_code] += 1
                if answer.status_code not in EXPECTED:
                    self.unexpected.append(f"{act.__name__}: {answer.status_code} {answer.text[:300]}")

    def new_id(self) -> str:
        return f"{self.mark}-{uuid.UUID(int=self.random.getrandbits(128)).hex[:12]}"

    def create(self) -> httpx.Response:
        body = {"threadId": self.random.choice(THREADS), "resourceId": self.random.choice(self.resources)}
        return self.client.post("/api/memory/threads", json={**body, "title": f"Title {self.mark}"})

    def save(self) -> httpx.Response:
        """Save messages of several threads in a random order. Half of the requests only name the kept one."""
        names = [KEPT, *(self.random.sample(THREADS, 2) if self.random.random() < 0.5 else ())]
        self.random.shuffle(names)
        items = [
            {"id": self.new_id(), "threadId": name, "role": "user", "content": f"Words of {self.mark}"}
            for name in names
        ]
        answer = self.client.post("/api/memory/save-messages", json={"messages": items})
        if answer.status_code == 200:
            self.saved_ids += [item["id"] for item in items if item["threadId"] == KEPT]
        return answer

    def run_agent(self) -> httpx.Response:
        memory = {"thread": self.random.choice(THREADS), "resource": self.random.choice(self.resources)}
        body = {"messages": f"Question of {self.mark}", "memory": memory}
        return self.client.post(f"/api/agents/{AGENT}/generate", json=body)

    def send_message(self) -> httpx.Response:
        target = {"threadId": self.random.choice(THREADS), "resourceId": self.random.choice(self.resources)}
        route = self.random.choice(["send-message", "queue-message"])
        return self.client.post(f"/api/agents/{AGENT}/{route}", json={"message": f"Signal of {self.mark}", **target})

    def note(self) -> httpx.Response:
        is_kept = self.random.random() < 0.5
        key = KEPT if is_kept else self.random.choice(THREADS)
        path = f"/api/memory/threads/{key}/working-memory?agentId={AGENT}"
        answer = self.client.post(path, json={"workingMemory": f"Note {self.new_id()}"})
        self.notes += is_kept and answer.status_code == 200
        return answer

    def clone(self) -> httpx.Response:
        body = {"newThreadId": self.random.choice(THREADS), "resourceId": self.random.choice(self.resources)}
        return self.client.post(f"/api/memory/threads/{self.random.choice(THREADS)}/clone", json=body)

    def transfer(self) -> httpx.Response:
        body = {"resourceId": self.random.choice(self.resources)}
        return self.client.post(f"/api/memory/threads/{self.random.choice(THREADS)}/transfer", json=body)

    def delete_messages(self) -> httpx.Response:
        key = self.random.choice(THREADS)
        listed = self.client.get(f"/api/memory/threads/{key}/messages", params={"perPage": 5})
        ids = [message["id"] for message in listed.json().get("messages", [])]
        parameters = {"threadId": key}
        return self.client.post("/api/memory/messages/delete", params=parameters, json={"messageIds": ids or ["none"]})

    def delete_thread(self) -> httpx.Response:
        return self.client.delete(f"/api/memory/threads/{self.random.choice(THREADS)}")

    def read(self) -> httpx.Response:
        key = self.random.choice([*THREADS, KEPT])
        paths = ("", "/messages", "/working-memory?resourceId=alice")
        return self.client.get(f"/api/memory/threads/{key}{self.random.choice(paths)}")


def race(
    copy: Served, mark: str, meanwhile: Callable[[], None] = lambda: None, resources: Sequence[str] = RESOURCES
) -> list[Racer]:
    """Let all clients send their requests. Return the clients."""
    racers = [Racer(copy, number, mark, resources) for number in range(CLIENTS)]
    for racer in racers:
        racer.start()
    meanwhile()
    for racer in racers:
        racer.join(600)
        assert not racer.is_alive()
    return racers


def forget(copy: Served) -> None:
    """Delete the data of both resources while others use them, and wait for the jobs."""
    with copy.client(copy.keys["editor"]) as client:
        for resource in RESOURCES:
            time.sleep(0.1)
            answer = client.post(f"/api/memory/resources/{resource}/forget")
            assert answer.status_code in (202, 404), answer.text
            if answer.status_code == 202:
                wait_for_job(client, answer.json()["id"])


def wait_for_job(client: httpx.Client, job_id: str) -> None:
    wait_until(lambda: client.get(f"/api/jobs/{job_id}").json()["state"] == "done", 120, f"the end of job {job_id}")


def texts_with(copy: Served, mark: str) -> list[str]:
    """Return the rows that have a text of a round."""
    tables = {table: rows(copy, f"SELECT * FROM {table}") for table in TEXT_TABLES}
    return [f"{table}: {str(row)[:200]}" for table, lines in tables.items() for row in lines if mark in str(row)]


def test_concurrent_clients_lose_nothing_and_see_no_error_of_the_server(copy):
    with copy.client(copy.keys["editor"]) as client:
        body = {"threadId": KEPT, "resourceId": "carol"}
        assert client.post("/api/memory/threads", json=body).status_code == 201

    racers = race(copy, "round-one") + race(copy, "round-two", lambda: forget(copy))

    assert [line for racer in racers for line in racer.unexpected] == []
    saved = [key for racer in racers for key in racer.saved_ids]
    stored = rows(
        copy,
        "SELECT m.key, m.number FROM runs_app_message m JOIN runs_app_thread t ON t.id = m.thread_id "
        f"WHERE t.key = '{KEPT}' ORDER BY m.number",
    )
    assert sorted(key for key, _ in stored) == sorted(saved)
    assert [number for _, number in stored] == [*range(1, len(saved) + 1)]
    revision = "SELECT working_revision FROM memory_app_resource WHERE key = 'carol'"
    assert rows(copy, revision) == [(sum(racer.notes for racer in racers),)]
    assert_settled(copy)


def assert_settled(copy: Served) -> None:
    """Check that all runs end, that no job failed, and that the tables fit together."""
    open_runs = "SELECT COUNT(*) FROM runs_app_agentrun WHERE finished_at IS NULL"
    wait_until(lambda: rows(copy, open_runs) == [(0,)], 120, f"the end of all runs; see {copy.log}")
    assert rows(copy, "SELECT kind, error FROM jobs_app_job WHERE state = 'failed'") == []
    assert "deadlock" not in copy.log_text()
    moved = (
        "SELECT t.key FROM runs_app_thread t JOIN memory_app_resource r ON r.id = t.resource_id "
        "WHERE r.key <> t.resource OR r.realm <> t.realm"
    )
    assert rows(copy, moved) == []
    beyond = (
        "SELECT t.key FROM runs_app_thread t JOIN runs_app_message m ON m.thread_id = t.id "
        "GROUP BY t.id, t.key, t.last_number HAVING MAX(m.number) > t.last_number"
    )
    assert rows(copy, beyond) == []


def test_what_was_forgotten_does_not_come_back_although_clients_go_on(copy):
    # One resource: texts that a clone or a transfer gives to another one are not deleted with the first.
    alone = RESOURCES[:1]
    race(copy, "early-words", resources=alone)
    settle = "SELECT COUNT(*) FROM runs_app_agentrun WHERE finished_at IS NULL"
    wait_until(lambda: rows(copy, settle) == [(0,)], 120, "the end of all runs")
    with copy.client(copy.keys["editor"]) as client:
        client.delete(f"/api/memory/threads/{KEPT}")
        for resource in ("bob", "carol"):
            answer = client.post(f"/api/memory/resources/{resource}/forget")
            if answer.status_code == 202:
                wait_for_job(client, answer.json()["id"])
    assert texts_with(copy, "early-words")

    racers = race(copy, "later-words", lambda: forget(copy), alone)

    assert [line for racer in racers for line in racer.unexpected] == []
    wait_until(lambda: rows(copy, "SELECT COUNT(*) FROM jobs_app_job WHERE state IN ('queued', 'running')") == [(0,)])
    assert texts_with(copy, "early-words") == []
