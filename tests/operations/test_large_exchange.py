"""Export and import of a large store: bounded memory, identical exports, and no change by a repeated import."""

import json
import subprocess
import sys

import pytest

from agentcms.server.processes import PROJECT
from tests.served_accounts import prepared

FEW, MANY = 100, 10_000
MAX_MEMORY_GROWTH = 48 << 20  # above an idle process, whatever the size of the file


def measure(folder, agents):
    """Run benchmarks.exchange on a new database and return its figures."""
    command = [sys.executable, "-m", "benchmarks.exchange", "--json", "--agents", str(agents)]
    with prepared(folder / "var") as copy:
        done = subprocess.run(command, cwd=PROJECT, env=copy.environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("agents", [FEW, pytest.param(MANY, marks=pytest.mark.drill)])
def test_a_large_file_is_imported_and_exported_in_bounded_memory(tmp_path, agents):
    figures = measure(tmp_path, agents)

    assert figures["dry run"]["result"]["create"] == figures["import"]["result"]["create"] == agents
    assert figures["repeated import"]["result"]["same"] == agents
    assert figures["export"]["result"]["records"] == agents
    assert figures["export"]["result"]["bytes"] > agents * 5500
    assert figures["export"]["result"]["sha256"] == figures["repeated export"]["result"]["sha256"]
    for step in figures.values():
        assert step["peak"] - step["before"] < MAX_MEMORY_GROWTH
