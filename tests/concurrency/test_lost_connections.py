"""Requests, runs and streams while connections to PostgreSQL are lost again and again."""

import contextlib
import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import httpx
import psycopg
import pytest

from tests.served import wait_until

# A drill: the losses are random, and may hit one reader for longer than it waits for the database.
pytestmark = [pytest.mark.postgres_only, pytest.mark.drill]

CLIENTS = 8
SECONDS = 20
LOSS_INTERVAL = 0.15  # seconds
CUT_OFF = 499  # instead of a status
OTHERS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


@pytest.fixture
def database(own_served) -> Iterator[psycopg.Connection]:
    with psycopg.connect(own_served.environment["DATABASE_URL"], autocommit=True) as connection:
        yield connection


@contextlib.contextmanager
def lost_connections(database) -> Iterator[list[int]]:
    """End a random connection of the copy several times a second. Provide a list of those that were lost."""
    ended, lost = threading.Event(), []

    def lose_connections():
        while not ended.wait(LOSS_INTERVAL):
            process_ids = [process_id for (process_id,) in database.execute(OTHERS)]
            for process_id in random.sample(process_ids, min(1, len(process_ids))):
                database.execute("SELECT pg_terminate_backend(%s)", [process_id])
                lost.append(process_id)

    thread = threading.Thread(target=lose_connections)
    thread.start()
    try:
        yield lost
    finally:
        ended.set()
        thread.join()


def edit(client, agent, text):
    return client.patch(f"/api/stored/agents/{agent}", json={"instructions": text})


def generate(client, agent, text):
    return client.post(f"/api/agents/{agent}/generate", json={"messages": text, "durable": text.endswith("1")})


def stream(client, agent, text):
    try:
        answer = client.post(f"/api/agents/{agent}/stream", json={"messages": text})
    except httpx.RemoteProtocolError:  # the client notices
        return httpx.Response(CUT_OFF)
    assert answer.status_code != 200 or '"type":"finish"' in answer.text, answer.text[-300:]
    return answer


def read(client, path, **params):
    """Return the body of an answer. Connections that were lost last may still be in the pools of the copy."""
    answers = []

    def is_answered():
        answers.append(client.get(path, params=params))
        return answers[-1].status_code != 503

    wait_until(is_answered, 20, f"an answer to {path}")
    return answers[-1].json()


def test_requests_are_answered_and_nothing_acknowledged_is_lost(own_served, database):
    agent, model = f"agent-{uuid4().hex[:8]}", {"provider": "demo", "name": "echo", "delay": 0}
    with own_served.client(own_served.keys["root"]) as client:
        body = {"id": agent, "name": "Concierge", "instructions": "0", "model": model}
        assert client.post("/api/stored/agents", json=body).status_code == 201
    until = time.monotonic() + SECONDS

    def act_often(number):
        statuses, acts = Counter(), itertools.cycle([edit, generate, stream])
        with own_served.client(own_served.keys["root"]) as client:
            client.timeout = 60
            while time.monotonic() < until:
                act = next(acts)
                answer = act(client, agent, f"{number}/{statuses.total()}")
                statuses[act.__name__, answer.status_code] += 1
                assert answer.status_code in (200, 424, CUT_OFF, 503), answer.text
                assert answer.status_code != 503 or answer.headers["Retry-After"]
        return statuses

    with lost_connections(database) as lost, ThreadPoolExecutor(CLIENTS) as pool:
        statuses = sum(pool.map(act_often, range(CLIENTS)), Counter())

    edits = statuses["edit", 200]
    assert len(lost) > 5
    assert statuses["stream", CUT_OFF] * 20 < statuses["stream", 200]
    assert min(edits, statuses["generate", 200], statuses["stream", 200]) > CLIENTS
    with own_served.client(own_served.keys["root"]) as client:
        versions = read(client, f"/api/stored/agents/{agent}/versions")["versions"]
        # A request whose connection was lost during its commit may have done its work.
        assert edits < versions[0]["versionNumber"] <= 1 + edits + statuses["edit", 503]

        def unfinished():
            runs = read(client, "/api/runs", agentId=agent, perPage=100)["runs"]
            return [run for run in runs if run["status"] in ("queued", "running")]

        wait_until(lambda: not unfinished(), 60, "the end of all runs")
