"""The same browser and the same people as for the pages of a history, and what the whole is measured with."""

from pathlib import Path

import pytest

from tests.browser.versions.conftest import agent, api, browser, people, visit
from tests.npm import install

__all__ = ["agent", "api", "axe", "browser", "people", "visit"]

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def axe() -> str:
    """The rules of axe-core from npm, as the lock file names them."""
    return (install(HERE) / "node_modules" / "axe-core" / "axe.min.js").read_text()
