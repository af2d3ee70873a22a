"""The installed clients that the tests share."""

from pathlib import Path

import pytest

from tests.npm import install


@pytest.fixture(scope="session")
def installed() -> Path:
    """Install the clients of the lock file and return their folder."""
    return install(Path(__file__).parent)
