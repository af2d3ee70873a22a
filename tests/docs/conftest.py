"""The fixtures of tests that run the examples of the documentation."""

from tests.runs_app.conftest import ask, cleared_provider_cache, run

__all__ = ["ask", "cleared_provider_cache", "run"]
