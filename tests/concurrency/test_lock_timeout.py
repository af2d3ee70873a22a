"""Writes that wait too long for a lock."""

import sqlite3
from contextlib import closing, contextmanager

import psycopg
import pytest

from tests.served_accounts import serving_with_accounts

AGENTS = "/api/stored/agents"
AGENT = {"id": "a", "name": "A", "instructions": "", "model": {"provider": "demo", "name": "echo"}}


@pytest.fixture
def copy(tmp_path):
    """Start a copy whose writers wait two seconds for a lock."""
    with serving_with_accounts(tmp_path / "var", DATABASE_LOCK_TIMEOUT="2", WEB_WORKERS="1") as copy:
        yield copy


@contextmanager
def locked(copy):
    """Hold the lock of the agent in another connection."""
    if url := copy.environment.get("DATABASE_URL"):
        with psycopg.connect(url) as connection:
            connection.execute("SELECT 1 FROM agents_app_agent WHERE id = 'a' FOR UPDATE")
            yield
        return
    with closing(sqlite3.connect(copy.data_dir / "agentcms.sqlite3", isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def test_a_write_that_waits_too_long_for_a_lock_is_a_503(copy):
    with copy.client(copy.keys["root"]) as client:
        assert client.post(AGENTS, json=AGENT).status_code == 201

        with locked(copy):
            refused = client.patch(f"{AGENTS}/a", json={"name": "B"})
            read = client.get(f"{AGENTS}/a")
        retried = client.patch(f"{AGENTS}/a", json={"name": "B"})

    assert (refused.status_code, refused.json()["code"]) == (503, "unavailable"), refused.text
    assert int(refused.headers["Retry-After"]) > 0
    assert (read.status_code, read.json()["name"]) == (200, "A")
    assert retried.json()["activeVersionNumber"] == 2
