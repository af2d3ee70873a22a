"""The fixtures of tests that run the examples of the documentation."""

from tests.runs_app.conftest import ask, providers_as_they_are, run

__all__ = ["ask", "providers_as_they_are", "run"]
