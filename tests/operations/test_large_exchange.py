"""Export and import of a store that is large: in bounded memory, the same bytes again, and nothing for nothing."""

import json
import os
import subprocess
import sys

import pytest

from agentcms.server.processes import PROJECT
from tests.served import own_database

FEW, MANY = 300, 10_000
MOST_MEMORY = 48 << 20  # beside what an idle process holds, however large the file is


def figures(folder, agents):
    """What benchmarks.exchange measured, on a database of its own."""
    command = [sys.executable, "-m", "benchmarks.exchange", "--json", "--agents", str(agents)]
    outside = {"DJANGO_SETTINGS_MODULE", "TEST_DATA_DIR", "DATABASE_URL"}
    kept = {name: value for name, value in os.environ.items() if name not in outside}
    with own_database() as database:
        environment = {**kept, **database, "DATA_DIR": str(folder)}
        done = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("agents", [FEW, pytest.param(MANY, marks=pytest.mark.drill)])
def test_a_large_file_is_exported_and_imported_in_bounded_memory(tmp_path, agents):
    found = figures(tmp_path, agents)

    assert found["dry run"]["result"]["create"] == found["import"]["result"]["create"] == agents
    assert found["import of the same"]["result"]["same"] == agents
    assert found["export"]["result"]["records"] == agents
    assert found["export"]["result"]["bytes"] > agents * 5500
    assert found["export"]["result"]["sha256"] == found["export again"]["result"]["sha256"]
    for each in found.values():
        assert each["peak"] - each["before"] < MOST_MEMORY
