"""The CPU profile of the benchmarks covers every measured operation, and the rendered page shows it."""

import json
import subprocess
import sys

from agentcms.server.processes import PROJECT
from benchmarks import report, report_titles
from tests.served_accounts import prepared

AGENTS = 300


def test_every_measured_operation_has_a_profile(tmp_path):
    with prepared(tmp_path / "var", API_THROTTLE="off") as copy:
        copy.manage("shell", "-v", "0", "-c", f"from benchmarks.sample_data import fill; fill({AGENTS}, 2)")
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
    profiles = json.loads(done.stdout.splitlines()[-1])
    assert profiles.keys() == report_titles.TARGETS.keys()
    for profile in profiles.values():
        assert profile["cpu"] > 0
        assert 0 < sum(profile["packages"].values()) <= 101
        assert "benchmarks" not in profile["packages"]

    report.write_json("profile", profiles, tmp_path / "docs")
    report.render(tmp_path / "docs")
    page = (tmp_path / "docs" / "README.md").read_text()
    assert [operation for operation in profiles if f"| {operation} | " not in page] == []


def test_the_committed_pages_are_rendered_from_the_committed_figures(tmp_path):
    for path in report.FOLDER.glob("*.json"):
        (tmp_path / path.name).write_text(path.read_text())

    report.render(tmp_path)

    rendered = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert rendered == {path.name: path.read_text() for path in report.FOLDER.iterdir()}
