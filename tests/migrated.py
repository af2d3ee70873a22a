"""One database with all migrations for each run of the tests.

Migrating takes four seconds of CPU. The databases of all workers of the tests, and of the copies that they serve, are
copies of it.
"""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
from django.apps.registry import Apps
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from psycopg import sql


def run_folder() -> Path:
    """Return the folder that all workers of a run share."""
    return Path(os.environ["TEST_DATA_DIR"])


def database_server() -> str:
    """Return the URL of the PostgreSQL server of the tests, or an empty text for SQLite."""
    url = os.environ.get("DATABASE_URL", "")
    return url if url.startswith("postgres") else ""


def database_name(purpose: str) -> str:
    """Return a name that no other run of the tests on the same server uses."""
    return f"{run_folder().name}_{purpose}".replace("-", "_").lower()


def execute(statement: str, *names: str) -> None:
    """Execute a statement about databases on the server of the tests."""
    with psycopg.connect(database_server(), autocommit=True) as server:
        server.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


@contextlib.contextmanager
def lock_of_run(name: str) -> Iterator[None]:
    """Let one process of the run at a time into the block."""
    with (run_folder() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def find_or_migrate(migrate: Callable[[str], Any]) -> str:
    """Return the name of the migrated database, a path for SQLite. The first caller migrates it."""
    name = database_name("migrated") if database_server() else str(run_folder() / "migrated.sqlite3")
    done = run_folder() / "migrated.done"
    with lock_of_run("migrated"):
        if not done.exists():
            if database_server():
                execute("DROP DATABASE IF EXISTS {}", name)  # of a worker whose migration failed
                execute("CREATE DATABASE {}", name)
            migrate(name)
            done.touch()
    return name


@contextlib.contextmanager
def own_copy() -> Iterator[None]:
    """Connect this process to a copy of the migrated database during the block."""
    original = connection.settings_dict["NAME"]
    template = find_or_migrate(migrate_here)
    if not database_server():
        copy = str(settings.DATABASES["default"]["TEST"]["NAME"])
    else:
        copy = database_name(os.environ.get("PYTEST_XDIST_WORKER", "main"))
    create_copy(template, copy)
    connect_to(copy)
    try:
        yield
    finally:
        connect_to(original)
        if database_server():
            execute("DROP DATABASE {} WITH (FORCE)", copy)


def create_copy(template: str, name: str) -> None:
    """Create a database that is a copy of another one."""
    if database_server():
        execute("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)
        execute("CREATE DATABASE {} TEMPLATE {}", name, template)
    else:
        shutil.copy2(template, name)


@contextlib.contextmanager
def new_database() -> Iterator[None]:
    """Connect this process to a database without tables during the block, for tests of single migrations.

    To migrate a complete database backwards and forwards again takes ten times as long.
    """
    original = str(connection.settings_dict["NAME"])
    name = database_name(f"new_{os.getpid()}") if database_server() else f"{original}-new"
    if database_server():
        execute("CREATE DATABASE {}", name)
    connect_to(name)
    try:
        yield
    finally:
        connect_to(original)
        if database_server():
            execute("DROP DATABASE {} WITH (FORCE)", name)
        else:
            os.unlink(name)


def migrate_to(*targets: tuple[str, str]) -> Apps:
    """Migrate forwards or backwards to these migrations of applications, and return the models of that time."""
    MigrationExecutor(connection).migrate(targets)
    return MigrationExecutor(connection).loader.project_state(targets).apps


def migrate_here(name: str) -> None:
    """Migrate a database in this process."""
    original = connection.settings_dict["NAME"]
    connect_to(name)
    call_command("migrate", interactive=False, verbosity=0)
    connect_to(original)


def connect_to(name: str) -> None:
    """Close the connections of this thread and the pool, so that the next one is to this database."""
    connection.close()
    if database_server():
        connection.close_pool()
    settings.DATABASES["default"]["NAME"] = connection.settings_dict["NAME"] = name


def drop_databases() -> None:
    """Drop the databases on the server that several workers used."""
    if database_server():
        for purpose in ("migrated", "accounts"):
            execute("DROP DATABASE IF EXISTS {} WITH (FORCE)", database_name(purpose))
