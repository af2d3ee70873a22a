"""Queries of running and reading runs, in all threads: the request, the run, and the writer of its events."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection

from runs_app.api import agents
from runs_app.engine.engine import find_engine
from runs_app.events import pending_writes, writer
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.runs import DEMO, start_run, wait_for_end, wait_for_engine
from tests.served import wait_until

pytestmark = pytest.mark.usefixtures("idle_engine")

# The lock that serializes the runs of a user is a statement on PostgreSQL only.
STATEMENTS_OF_START = 7 if connection.vendor == "postgresql" else 6


@pytest.fixture
def editor():
    return member("editor")


@pytest.fixture
def caller(editor):
    """Return a caller whose key has just been used, and whose agent was built."""
    AgentFactory(id="concierge", model=DEMO)
    caller = Caller(api_key(editor))
    generate(caller)
    return caller


def generate(caller):
    assert caller.post("/api/agents/concierge/generate", {"messages": "Hello"}).status_code == 200


def stream(caller):
    body = {"messages": "Hello"}
    response = caller.client.post("/api/agents/concierge/stream", body, content_type="application/json")
    assert b"".join(response.streaming_content).endswith(b"data: [DONE]\n\n")


@pytest.fixture
def queries(settings, caplog, monkeypatch):
    """Return a function that calls another one and returns the queries of this thread and those of all others.

    Transactions and the periodic queries of the writer do not count.
    """
    monkeypatch.setattr(writer, "CANCEL_POLL_INTERVAL", 600)
    monkeypatch.setattr(writer, "LEASE_RENEW_INTERVAL", 600)

    @contextmanager
    def logged_queries() -> Iterator[None]:
        settings.DEBUG = True
        with caplog.at_level(logging.DEBUG, "django.db.backends"):
            yield
        settings.DEBUG = False

    def captured(act):
        wait_for_engine()
        caplog.clear()
        with logged_queries():
            act()
            wait_for_engine()
        records = [record for record in caplog.records if record.name == "django.db.backends"]
        statements = [
            record for record in records if record.sql.split()[0] in ("SELECT", "INSERT", "UPDATE", "DELETE")
        ]
        here = threading.current_thread().name
        return (
            [record.sql for record in statements if record.threadName == here],
            [record.sql for record in statements if record.threadName != here],
        )

    return captured


def test_generate_reads_the_run_and_its_events_once(caller, queries):
    request, engine = queries(lambda: generate(caller))

    assert len(request) == STATEMENTS_OF_START + 2
    assert ["runs_app_agentrun" in request[-2], "runs_app_runevent" in request[-1]] == [True, True]
    commits = sum(sql.startswith("SELECT") for sql in engine)
    assert commits <= 3  # of the answer with its step, and of the end, unless the run is slow
    assert len(engine) <= 3 * commits + 1  # the lock, the events and the steps of each commit, and the end


def test_an_answer_is_written_together_with_the_end(caller, queries, monkeypatch):
    monkeypatch.setattr(pending_writes, "COMMIT_INTERVAL", 600)

    _, engine = queries(lambda: generate(caller))

    assert [sql.split()[0] for sql in engine] == ["SELECT", "INSERT", "INSERT", "UPDATE"]


def test_an_answer_that_is_there_before_its_request_waits_is_written_together_with_the_end(
    caller, queries, monkeypatch
):
    """On a busy machine, the run is faster than the request that started it."""
    monkeypatch.setattr(pending_writes, "COMMIT_INTERVAL", 600)
    monkeypatch.setattr(pending_writes, "URGENT_DELAY", 0)
    answer = agents.answer_response

    def answer_later(*call):
        wait_until(lambda: not find_engine().writer.runs, 30, "the end of the run")
        return answer(*call)

    monkeypatch.setattr(agents, "answer_response", answer_later)

    _, engine = queries(lambda: generate(caller))

    assert [sql.split()[0] for sql in engine] == ["SELECT", "INSERT", "INSERT", "UPDATE"]


def test_a_stream_reads_the_events_once_per_commit(caller, queries):
    request, engine = queries(lambda: stream(caller))

    reads = request[STATEMENTS_OF_START:]
    commits = sum(sql.startswith("SELECT") for sql in engine)
    assert len(request[:STATEMENTS_OF_START]) == STATEMENTS_OF_START
    assert all("runs_app_runevent" in sql for sql in reads)
    assert len(reads) <= commits + 1  # and once at the beginning
    assert len(engine) <= 3 * commits + 1


def test_reading_a_run_takes_a_fixed_number_of_queries(caller, editor, queries):
    run = wait_for_end(start_run(AgentFactory(model=DEMO), editor))

    detail, _ = queries(lambda: caller.get(f"/api/runs/{run.pk}"))
    events, _ = queries(lambda: caller.get(f"/api/runs/{run.pk}/events"))
    finished, _ = queries(lambda: b"".join(caller.client.get(f"/api/runs/{run.pk}/stream").streaming_content))

    assert [len(detail), len(events), len(finished)] == [4, 3, 3]


def test_the_list_of_runs_takes_a_fixed_number_of_queries(caller, editor, queries):
    few, _ = queries(lambda: caller.get("/api/runs"))
    for _ in range(3):
        generate(caller)

    many, _ = queries(lambda: caller.get("/api/runs"))

    assert len(few) == len(many) == 3
