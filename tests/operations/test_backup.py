"""Saving and restoring backups."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import uuid

import psycopg
import pytest
from django.db import connection

from agentcms.server.processes import PROJECT
from tests import postgres
from tests.operations.running_copy import assert_consistent, run_inside
from tests.served import Served, own_database


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Return a PATH with the programs of PostgreSQL."""
    if connection.vendor != "postgresql":
        return os.environ["PATH"]
    folder = postgres.binaries(tmp_path_factory.mktemp("postgres"))
    return f"{folder}:{os.environ['PATH']}"


def backup(copy, programs, act, file):
    environment = {**copy.environment, "PATH": programs}
    command = [sys.executable, "deploy/backup", act, str(file)]
    return subprocess.run(command, env=environment, cwd=PROJECT, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """Create a copy with demo data, which is not started and which no test changes."""
    with own_database() as database:
        copy = Served(tmp_path_factory.mktemp("original") / "var", **database)
        copy.manage("migrate", "-v", "0")
        copy.manage("seed_demo")
        yield copy


def dump_tables(copy):
    """Return all rows of all tables, and all triggers."""
    if url := copy.environment.get("DATABASE_URL"):
        with psycopg.connect(url) as line:
            tables = line.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1").fetchall()
            tables_with_rows = {name: sorted(map(str, line.execute(f'SELECT * FROM "{name}"'))) for (name,) in tables}
            triggers = line.execute("SELECT tgname FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1").fetchall()
            return tables_with_rows, triggers
    with contextlib.closing(sqlite3.connect(copy.data_dir / "agentcms.sqlite3")) as line:
        tables = line.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1").fetchall()
        tables_with_rows = {name: sorted(map(str, line.execute(f'SELECT * FROM "{name}"'))) for (name,) in tables}
        return tables_with_rows, line.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY 1"
        ).fetchall()


CREATE_SESSION = """
from importlib import import_module
from django.conf import settings
session = import_module(settings.SESSION_ENGINE).SessionStore()
session["_auth_user_id"] = "1"
session.create()
print(session.session_key)
"""


def test_a_backup_contains_no_key_of_a_session(tmp_path, programs, original):
    key = original.manage("shell", "-v", "0", "--no-imports", "-c", CREATE_SESSION)
    file = tmp_path / "file.backup"
    with own_database() as database:
        second = Served(tmp_path / "second", **database)

        backup(original, programs, "save", file)
        backup(second, programs, "restore", file)

        assert len(dump_tables(second)[0]["django_session"]) > 0
        assert key not in str(dump_tables(second))
        assert key.encode() not in file.read_bytes()


def export_digest(copy):
    return run_inside(copy, "print_export_digest()")


def test_a_restored_database_equals_the_original(tmp_path, programs, original):
    with own_database() as database:
        second = Served(tmp_path / "second", **database)
        file = tmp_path / f"{uuid.uuid4()}.backup"

        saved = backup(original, programs, "save", file)
        restored = backup(second, programs, "restore", file)

        assert (saved.returncode, saved.stderr) == (0, "")
        assert (restored.returncode, restored.stderr) == (0, "")
        before, after = dump_tables(original), dump_tables(second)
        assert len(before[0]["agents_app_agent"]) >= 12
        assert before == after
        assert export_digest(original) == export_digest(second)
        second.manage("migrate", "--check")
        assert_consistent(second)
        assert file.stat().st_mode & 0o077 == 0


@pytest.mark.postgres_only
def test_a_backup_uses_the_connection_options_of_the_url(tmp_path, programs, original, monkeypatch):
    url = original.environment["DATABASE_URL"]
    monkeypatch.setitem(
        original.environment, "DATABASE_URL", f"{url}?sslmode=require"
    )  # the server has no certificate

    done = backup(original, programs, "save", tmp_path / "file.backup")

    assert done.returncode != 0
    assert "SSL" in done.stderr


def test_a_backup_is_not_restored_over_existing_data(tmp_path, programs, original):
    before = dump_tables(original)
    file = tmp_path / "file.backup"
    backup(original, programs, "save", file)

    done = backup(original, programs, "restore", file)

    assert done.returncode == 1
    assert "empty" in done.stderr or "exists" in done.stderr
    assert dump_tables(original) == before


def test_a_truncated_backup_restores_nothing(tmp_path, programs, original):
    with own_database() as database:
        second = Served(tmp_path / "second", **database)
        file = tmp_path / "file.backup"
        backup(original, programs, "save", file)
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])

        done = backup(second, programs, "restore", file)

        assert done.returncode != 0
        if "DATABASE_URL" in second.environment:
            assert dump_tables(second) == ({}, [])
        else:
            assert not (second.data_dir / "agentcms.sqlite3").exists()


def backup_sqlite(data_dir, act, file):
    environment = {"PATH": os.environ["PATH"], "DATA_DIR": str(data_dir)}
    command = [sys.executable, "deploy/backup", act, str(file)]
    return subprocess.run(command, env=environment, cwd=PROJECT, capture_output=True, text=True)


@pytest.mark.parametrize("name", ["a#b", "a?b", "a%20b"])
def test_a_folder_may_have_any_name(tmp_path, name):
    data_dir, file = tmp_path / name, tmp_path / name / "file.backup"
    data_dir.mkdir()
    with contextlib.closing(sqlite3.connect(data_dir / "agentcms.sqlite3")) as line:
        line.execute("CREATE TABLE kept (id)")

    saved = backup_sqlite(data_dir, "save", file)
    (data_dir / "agentcms.sqlite3").unlink()
    restored = backup_sqlite(data_dir, "restore", file)

    assert (saved.returncode, restored.returncode, saved.stderr + restored.stderr) == (0, 0, "")
    with contextlib.closing(sqlite3.connect(data_dir / "agentcms.sqlite3")) as line:
        assert line.execute("SELECT name FROM sqlite_master").fetchall() == [("kept",)]


@pytest.mark.parametrize("content", [b"", b"no database", None], ids=["empty", "text", "missing"])
def test_a_file_that_is_no_backup_is_named_and_restores_nothing(tmp_path, content):
    data_dir, file = tmp_path / "data", tmp_path / "file.backup"
    if content is not None:
        file.write_bytes(content)

    done = backup_sqlite(data_dir, "restore", file)

    assert done.returncode == 1
    assert str(file) in done.stderr
    assert list(data_dir.iterdir()) == []


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_a_backup_is_not_restored_beside_the_log_of_another_database(tmp_path, suffix):
    file = tmp_path / "file.backup"
    sqlite3.connect(file).close()
    (tmp_path / f"agentcms.sqlite3{suffix}").touch()

    done = backup_sqlite(tmp_path, "restore", file)

    assert done.returncode == 1
    assert done.stderr == f"{tmp_path}/agentcms.sqlite3{suffix} exists. Stop the application and move it away first.\n"
    assert not (tmp_path / "agentcms.sqlite3").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_command_that_is_stopped_leaves_no_partial_copy(tmp_path, number):
    pg_dump = tmp_path / "pg_dump"
    pg_dump.write_text("#!/bin/sh\necho started\nexec sleep 30\n")
    pg_dump.chmod(0o700)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "DATABASE_URL": "postgres://cms@db/cms"}
    file = tmp_path / "copies" / "file.backup"
    file.parent.mkdir()
    command = [sys.executable, "deploy/backup", "save", str(file)]

    with subprocess.Popen(
        command,
        env=environment,
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # As in a terminal. Shells start programs in the background so that they ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdout.readline() == "started\n"
        process.send_signal(number)

        assert (process.wait(10), process.stderr.read()) == (128 + number, "")

    assert list(file.parent.iterdir()) == []
