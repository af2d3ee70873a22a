"""Commands on a database without tables."""

import json
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
# `manage.py` with each list of arguments, in one process: each start of Django takes a second.
RUN_COMMANDS = """
import io, json, runpy, sys
from contextlib import redirect_stderr, redirect_stdout

results = []
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["manage.py", *arguments]
    out, err = io.StringIO(), io.StringIO()
    code = 0
    try:
        with redirect_stdout(out), redirect_stderr(err):
            runpy.run_path("manage.py", run_name="__main__")
    except SystemExit as end:
        code = end.code
    results.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return the exit code, the output and the errors of each command, on a copy that was never started."""
    with own_database() as database:
        copy = Served(tmp_path_factory.mktemp("empty") / "var", **database)
        environment = {**copy.environment, "AGENTCMS_PASSWORD": "a-long-enough-password-7"}
        command = [sys.executable, "-c", RUN_COMMANDS, json.dumps(COMMANDS)]
        done = subprocess.run(command, env=environment, cwd=PROJECT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return {command[0]: result for command, result in zip(COMMANDS, json.loads(done.stdout), strict=True)}


@pytest.mark.parametrize("name", [command[0] for command in COMMANDS])
def test_a_command_without_tables_asks_to_migrate_first(results, name):
    message = "The database is not migrated. Run `make run` or `manage.py migrate` first."

    # Python prints a text that is an exit code, and ends with 1.
    assert results[name] == [message, "", ""]
