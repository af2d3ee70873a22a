"""The fixtures of browser tests of the whole site."""

from pathlib import Path

import pytest

from tests.npm import install

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def axe() -> str:
    """The rules of axe-core from npm, as the lock file names them."""
    return (install(HERE) / "node_modules" / "axe-core" / "axe.min.js").read_text()
