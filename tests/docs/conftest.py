"""The fixtures of tests that run the examples of the documentation."""

from tests.api_fixtures import admin_caller
from tests.runs_app.conftest import ask, cleared_provider_cache, run

__all__ = ["admin_caller", "ask", "cleared_provider_cache", "run"]
