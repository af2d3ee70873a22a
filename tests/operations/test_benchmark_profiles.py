"""The profile of what still costs is taken of every operation that is measured, and told."""

import json
import subprocess
import sys

from agentcms.server.processes import PROJECT
from benchmarks import telling
from tests.served_accounts import prepared

AGENTS = 300


def test_every_measured_operation_has_a_profile(tmp_path):
    with prepared(tmp_path / "var", API_THROTTLE="off") as copy:
        copy.manage("shell", "-v", "0", "-c", f"from benchmarks.filling import fill; fill({AGENTS}, 2)")
        command = [
            "-m",
            "benchmarks.profiles",
            copy.keys["root"],
            "--agents",
            str(AGENTS),
            "--seconds",
            "0.2",
        ]
        done = subprocess.run(
            [sys.executable, *command], cwd=PROJECT, env=copy.environment, capture_output=True, text=True
        )

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found.keys() == telling.WANTED.keys()
    for figures in found.values():
        assert figures["cpu"] > 0
        assert 0 < sum(figures["packages"].values()) <= 101
        assert "benchmarks" not in figures["packages"]

    telling.keep("profile", found, tmp_path / "docs")
    telling.page(tmp_path / "docs")
    page = (tmp_path / "docs" / "README.md").read_text()
    assert [operation for operation in found if f"| {operation} | " not in page] == []
