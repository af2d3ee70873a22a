"""API callers with different roles."""

import pytest

from tests.api_client import Caller
from tests.factories import UserFactory, api_key, member


@pytest.fixture(autouse=True)
def _database(db: None) -> None:
    """Enable database access in every test."""


@pytest.fixture
def api(db: None) -> Caller:
    """Return a publisher of the shared space."""
    return Caller(api_key(member("publisher", username="penny")))


@pytest.fixture
def editor(db: None) -> Caller:
    return Caller(api_key(member("editor", username="eddie")))


@pytest.fixture
def viewer(db: None) -> Caller:
    return Caller(api_key(member("viewer", username="vera")))


@pytest.fixture
def stranger(db: None) -> Caller:
    """Return a manager of another owner."""
    return Caller(api_key(member("manager", "elsewhere", username="stella")))


@pytest.fixture
def admin_caller(db: None) -> Caller:
    """Return a superuser."""
    return Caller(api_key(UserFactory(username="root", is_superuser=True)))
