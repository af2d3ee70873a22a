"""The fixtures of browser tests of the whole site."""

from pathlib import Path

import pytest

from tests.npm import install

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def axe() -> str:
    """Return the source of axe-core in the version of the lock file."""
    return (install(HERE) / "node_modules" / "axe-core" / "axe.min.js").read_text()
