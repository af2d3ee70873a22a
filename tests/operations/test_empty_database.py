"""Commands on a database without tables."""

import subprocess
import sys

import pytest

from agentcms.server.processes import PROJECT
from tests.served import Served, own_database

COMMANDS = [
    ["create_user", "ann"],
    ["create_api_key", "ann"],
    ["seed_demo"],
    ["seed_demo_runs"],
    ["check_history"],
    ["prune_versions", "--dry-run"],
    ["record_versions"],
]


@pytest.fixture(scope="module")
def empty_copy(tmp_path_factory):
    """Return a copy that was never started."""
    with own_database() as database:
        yield Served(tmp_path_factory.mktemp("empty") / "var", **database)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_command_without_tables_asks_to_migrate_first(empty_copy, command):
    environment = {**empty_copy.environment, "AGENTCMS_PASSWORD": "a-long-enough-password-7"}
    arguments = [sys.executable, "manage.py", *command]

    done = subprocess.run(arguments, env=environment, cwd=PROJECT, capture_output=True, text=True, timeout=60)

    message = "The database is not migrated. Run `make run` or `manage.py migrate` first.\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", message)
