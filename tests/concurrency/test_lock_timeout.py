"""Writes that wait too long for a lock, and those whose statements take too long."""

import sqlite3
from contextlib import closing, contextmanager

import psycopg
import pytest

from tests.served_accounts import serving_with_accounts

AGENTS = "/api/stored/agents"
AGENT = {"id": "a", "name": "A", "instructions": "", "model": {"provider": "demo", "name": "echo"}}


@pytest.fixture
def copy(tmp_path):
    """Start a copy whose writers wait two seconds for a lock, and whose statements may take three."""
    limits = {"DATABASE_LOCK_TIMEOUT": "2", "DATABASE_STATEMENT_TIMEOUT": "3"}
    with serving_with_accounts(tmp_path / "var", WEB_WORKERS="1", **limits) as copy:
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


SLOW_UPDATES = """
CREATE FUNCTION be_slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(30); RETURN NEW; END';
CREATE TRIGGER be_slow BEFORE UPDATE ON agents_app_agent FOR EACH ROW EXECUTE FUNCTION be_slow()
"""


@pytest.mark.django_db
@pytest.mark.postgres_only
def test_a_statement_that_takes_too_long_is_a_503(copy):
    url = copy.environment["DATABASE_URL"]
    with copy.client(copy.keys["root"]) as client, psycopg.connect(url, autocommit=True) as connection:
        assert client.post(AGENTS, json=AGENT).status_code == 201
        connection.execute(SLOW_UPDATES)

        refused = client.patch(f"{AGENTS}/a", json={"name": "B"}, timeout=25)
        connection.execute("DROP TRIGGER be_slow ON agents_app_agent")
        retried = client.patch(f"{AGENTS}/a", json={"name": "B"})

    assert (refused.status_code, refused.json()["code"]) == (503, "unavailable"), refused.text
    assert int(refused.headers["Retry-After"]) > 0
    assert retried.json()["activeVersionNumber"] == 2
