"""A PostgreSQL server that stops under load."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from tests import postgres
from tests.operations.running_copy import NO_LIMIT, ConcurrentEditors, assert_consistent, is_ready, ready
from tests.served import Served, running, wait_until

pytestmark = pytest.mark.postgres_only


@contextlib.contextmanager
def own_postgres() -> Iterator["OwnPostgres"]:
    """Start a PostgreSQL server that can be stopped and writes to disk."""
    folder = Path(tempfile.mkdtemp(prefix="agentcms-drill-", dir="/tmp"))
    try:
        server = OwnPostgres(folder)
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class OwnPostgres:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs = postgres.binaries(folder)
        if owner := postgres.unprivileged():
            os.chown(folder, int(owner["user"]), int(owner["group"]))
        postgres.initialize(self.programs, folder / "data")
        self.url = f"postgresql://postgres@{quote(str(folder), safe='')}/postgres"
        self.process: subprocess.Popen[bytes] | None = None
        self.start()
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("ALTER DATABASE postgres SET synchronous_commit = on")

    def start(self) -> None:
        self.process = postgres.start(self.programs, self.folder)
        address = f"postgresql://postgres@/postgres?host={self.folder}"
        postgres.wait_until_it_answers(self.process, address, self.folder / "postgres.log")

    def stop(self, number: int = signal.SIGQUIT) -> None:
        """Stop the server in the mode `immediate`, like a crash."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(30)


def test_stopping_postgres_loses_no_acknowledged_edit(tmp_path, is_drill):
    with own_postgres() as server:
        copy = Served(tmp_path / "var", DATABASE_URL=server.url, AGENT_VERSION_LIMIT=NO_LIMIT)
        with running(copy):
            copy.create_user("root", "--superuser")
            copy.keys["root"] = copy.create_api_key("root")
            with ConcurrentEditors(copy) as editors:
                for _ in range(20 if is_drill else 2):
                    server.stop()
                    wait_until(lambda: ready(copy).get("database") == "failing", 60, "that the database is missed")
                    server.start()
                    editors.wait_for_more(20)
            wait_until(lambda: is_ready(copy), 120, f"readiness; {ready(copy)}")
            editors.assert_nothing_lost()
            assert_consistent(copy)
