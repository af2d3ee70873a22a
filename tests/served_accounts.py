"""Copies of the application that begin with a migrated database and one account for each role.

Migrating, collecting static files and creating accounts takes seconds. It is done once per run of the tests. Every
copy begins with the result.
"""

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from tests.migrated import database_name, database_server, execute, find_or_migrate, lock_of_run, run_folder
from tests.preloaded_copy import PreloadedCopy
from tests.served import PASSWORD, Served, own_database, running

# A superuser and users of the shared space, named like their roles.
ACCOUNTS = {
    "root": ["--superuser"],
    "publisher": ["--owner", "", "--role", "publisher"],
    "editor": ["--owner", "", "--role", "editor"],
    "viewer": ["--owner", "", "--role", "viewer"],
    "python": ["--owner", "python", "--role", "publisher"],  # sees only its own agents
    "maya": [
        "--owner",
        "python",
        "--role",
        "manager",
    ],  # a user of the demo data, in the examples of the Python client
}
# One process for all: each start of Django takes a second.
CREATE_ACCOUNTS = """
import io, json
from django.core.management import call_command
from agentcms.server import prepare

prepare.collect_static_files()
keys = {}
for name, options in ACCOUNTS.items():
    call_command("create_user", name, *options, stderr=io.StringIO())
    output = io.StringIO()
    call_command("create_api_key", name, stdout=output, stderr=io.StringIO())
    keys[name] = output.getvalue().strip()
print(json.dumps(keys))
"""
DATABASE_FILE = "agentcms.sqlite3"
CopyClass = TypeVar("CopyClass", bound=Served)


@contextlib.contextmanager
def prepared(folder: Path, copy_class: type[CopyClass] = PreloadedCopy, **environment: str) -> Iterator[CopyClass]:
    """Yield a copy that is not started, on a database of its own, with the keys of all accounts in `keys`."""
    template, keys = find_or_create_template()
    with own_database(database_name("accounts")) as database:
        copy = copy_class(folder, **database, **environment)
        copy_static_files(template, folder)
        for name in (DATABASE_FILE, "secret_key"):
            if (template / name).exists():
                shutil.copy2(template / name, folder / name)
        copy.keys = keys
        yield copy


@contextlib.contextmanager
def serving_with_accounts(folder: Path, **environment: str) -> Iterator[PreloadedCopy]:
    """Run a prepared copy."""
    with prepared(folder, **environment) as copy, running(copy):
        yield copy


def copy_static_files(template: Path, folder: Path) -> None:
    """Create the data folder of a copy, with the static files that the template has collected."""
    folder.mkdir(mode=0o700, exist_ok=True)
    shutil.copy2(template / "static.stamp", folder / "static.stamp")
    shutil.copytree(template / "static", folder / "static")


@contextlib.contextmanager
def serving_migrated(folder: Path, **environment: str) -> Iterator[Served]:
    """Run a copy on a migrated database without accounts."""
    template, _ = find_or_create_template()
    migrated = find_or_migrate(migrate_in_process)
    with own_database(migrated) as database:
        copy_static_files(template, folder)
        if not database:
            shutil.copy2(migrated, folder / DATABASE_FILE)
        with running(Served(folder, **database, **environment)) as copy:
            yield copy


def find_or_create_template() -> tuple[Path, dict[str, str]]:
    """Return the data folder that copies begin with, and the API key of each account."""
    template, keys = run_folder() / "served-template", run_folder() / "served-template.json"
    # The first worker of the tests creates it. The others wait.
    with lock_of_run("served-template"):
        if not keys.exists():
            keys.write_text(json.dumps(create_template(template)))
    return template, json.loads(keys.read_text())


def create_template(folder: Path) -> dict[str, str]:
    """Create the accounts in a migrated database. Return their API keys."""
    migrated = find_or_migrate(migrate_in_process)
    if database_server():
        execute("CREATE DATABASE {} TEMPLATE {}", database_name("accounts"), migrated)
        copy = Served(folder, DATABASE_URL=url_of(database_name("accounts")))
    else:
        folder.mkdir(mode=0o700)
        shutil.copy2(migrated, folder / DATABASE_FILE)
        copy = Served(folder)
    script = f"ACCOUNTS = {ACCOUNTS}\n{CREATE_ACCOUNTS}"
    output = copy.manage("shell", "-v", "0", "--no-imports", "-c", script, AGENTCMS_PASSWORD=PASSWORD)
    keys: dict[str, Any] = json.loads(output)
    return keys


def migrate_in_process(name: str) -> None:
    """Migrate a database in a process of its own, because this one may be in a transaction of a test."""
    database = url_of(name) if database_server() else f"sqlite:///{name}"
    Served(run_folder() / "migrating", DATABASE_URL=database).manage("migrate", "-v", "0")


def url_of(name: str) -> str:
    return f"{database_server().rpartition('/')[0]}/{name}"
