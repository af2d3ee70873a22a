"""Skipped tests in CI."""

import os
import subprocess
import sys

import pytest

from agentcms.server.processes import PROJECT

SKIPPING = "import pytest\n\n\ndef test_something():\n    pytest.skip('There is no browser.')\n"


@pytest.mark.parametrize(("is_ci", "code", "workers"), [("true", 1, "0"), ("true", 1, "1"), ("", 0, "0")])
def test_a_skipped_test_fails_ci(tmp_path, is_ci, code, workers):
    (tmp_path / "conftest.py").write_text("from tests.conftest import *\n")
    (tmp_path / "test_skipping.py").write_text(SKIPPING)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "TEST_"))}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", workers]

    done = subprocess.run(
        [*command, "-c", "pyproject.toml", "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=PROJECT,
        env={**environment, "CI": is_ci},
        capture_output=True,
        text=True,
        timeout=180,
    )

    assert done.returncode == code, done.stdout + done.stderr
    assert ("1 skipped, which CI does not accept." in done.stdout) is bool(is_ci)
