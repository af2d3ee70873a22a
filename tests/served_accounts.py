"""Copies of the application that begin with a migrated database and one account for each role.

Migrating, collecting static files and creating accounts takes seconds. It is done once per run of the tests. Every
copy begins with the result.
"""

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from tests.served import PASSWORD, Served, own_database, running

# A superuser and users of the shared space, named like their roles.
ACCOUNTS = {
    "root": ["--superuser"],
    "publisher": ["--owner", "", "--role", "publisher"],
    "editor": ["--owner", "", "--role", "editor"],
    "viewer": ["--owner", "", "--role", "viewer"],
    "python": ["--owner", "python", "--role", "publisher"],  # sees only its own agents
}
# One process for all: each start of Django takes a second.
CREATE_ACCOUNTS = """
import io, json
from django.core.management import call_command
from agentcms.server import prepare

prepare.migrate()
prepare.collect_static_files()
keys = {}
for name, options in ACCOUNTS.items():
    call_command("create_user", name, *options, stderr=io.StringIO())
    output = io.StringIO()
    call_command("create_api_key", name, stdout=output, stderr=io.StringIO())
    keys[name] = output.getvalue().strip()
print(json.dumps(keys))
"""
FILES = ("agentcms.sqlite3", "secret_key", "static.stamp")


@contextlib.contextmanager
def prepared(folder: Path, copy_class: type[Served] = Served, **environment: str) -> Iterator[Served]:
    """Yield a copy that is not started, on a database of its own, with the keys of all accounts in `keys`."""
    template, keys = find_or_create_template()
    with own_database(template_database_name()) as database:
        copy = copy_class(folder, **database, **environment)
        folder.mkdir(mode=0o700, exist_ok=True)
        for name in FILES:
            if (template / name).exists():
                shutil.copy2(template / name, folder / name)
        shutil.copytree(template / "static", folder / "static")
        copy.keys = keys
        yield copy


@contextlib.contextmanager
def serving_with_accounts(folder: Path, **environment: str) -> Iterator[Served]:
    """Run a prepared copy."""
    with prepared(folder, **environment) as copy, running(copy):
        yield copy


def find_or_create_template() -> tuple[Path, dict[str, str]]:
    """Return the data folder that copies begin with, and the API key of each account."""
    folder = Path(os.environ["TEST_DATA_DIR"])
    template, keys = folder / "served-template", folder / "served-template.json"
    # The first worker of the tests creates it. The others wait.
    with (folder / "served-template.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not keys.exists():
            keys.write_text(json.dumps(create_template(template)))
    return template, json.loads(keys.read_text())


def create_template(folder: Path) -> dict[str, str]:
    """Migrate a database and create the accounts. Return their API keys."""
    copy = Served(folder, **template_database())
    output = copy.manage(
        "shell",
        "-v",
        "0",
        "--no-imports",
        "-c",
        f"ACCOUNTS = {ACCOUNTS}\n{CREATE_ACCOUNTS}",
        AGENTCMS_PASSWORD=PASSWORD,
    )
    keys: dict[str, Any] = json.loads(output)
    return keys


def template_database() -> dict[str, str]:
    """Create the database that copies begin with. Return the variable that names it, or none for SQLite."""
    server = os.environ.get("DATABASE_URL", "")
    if not server.startswith("postgres"):
        return {}
    name = template_database_name()
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    return {"DATABASE_URL": f"{server.rpartition('/')[0]}/{name}"}


def template_database_name() -> str:
    """Return a name that no other run of the tests on the same server uses."""
    return Path(os.environ["TEST_DATA_DIR"]).name.replace("-", "_").lower()


def drop_template_database() -> None:
    server = os.environ.get("DATABASE_URL", "")
    if server.startswith("postgres"):
        with psycopg.connect(server, autocommit=True) as connection:
            name = sql.Identifier(template_database_name())
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))
