"""Storing the last use of an API key while another connection holds a lock."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg

from tests.operations.running_copy import execute, rows
from tests.served import Served, wait_until

UNUSED = "SELECT count(*) FROM access_app_apikey WHERE last_used_at IS NULL"


@contextmanager
def locked_keys(copy: Served) -> Iterator[None]:
    """Hold the locks that a write to a key needs: those of all rows, or that of the SQLite file."""
    if url := copy.environment.get("DATABASE_URL"):
        with psycopg.connect(url) as connection:
            connection.execute("SELECT 1 FROM access_app_apikey FOR UPDATE")
            yield
        return
    with closing(sqlite3.connect(copy.data_dir / "agentcms.sqlite3", isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def test_a_read_does_not_wait_for_a_lock_to_store_the_use_of_its_key(served):
    execute(served, "UPDATE access_app_apikey SET last_used_at = NULL")
    [(unused,)] = rows(served, UNUSED)

    with served.client(served.keys["viewer"]) as client:
        with locked_keys(served):
            began = time.monotonic()
            answers = [client.get("/api/stored/agents") for _ in range(3)]
            seconds = time.monotonic() - began
        while_locked = rows(served, UNUSED)
        # The worker writes too, and a read never waits for its lock either.
        wait_until(lambda: client.get("/api/stored/agents") and rows(served, UNUSED) == [(unused - 1,)])

    assert [answer.status_code for answer in answers] == [200, 200, 200]
    assert seconds < 5  # a write waits 20 seconds
    assert while_locked == [(unused,)]
